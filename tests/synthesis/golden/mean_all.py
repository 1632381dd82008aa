# Task: mean_all
# Reference: aten.mean.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":8},{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 1197 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 2048}, num_warps=4, num_stages=1),
        triton.Config({"STEPS": 2048}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 2048}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 1197
    x0_0 = tl.load(x0_ptr + step, mask=in_step, other=0.0)
    sum1 = tl.sum(x0_0, axis=0)
    tl.store(out0_ptr, sum1 / 1197.0)


class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.params = []

    def load_params(self, params):
        self.params = list(params)

    @classmethod
    def from_state(cls, params):
        model = cls()
        model.load_params([p.detach().contiguous() for p in params])
        return model

    def forward(self, *inputs):
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        device = tensors[0].device
        x0 = tensors[0]
        out0 = torch.empty((), dtype=torch.float32, device=device)
        rows_1[(1,)](x0, out0)
        return out0
