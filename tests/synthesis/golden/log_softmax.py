# Task: log_softmax
# Reference: aten._log_softmax.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":256,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":256,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: 4 x 130 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 256}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 256}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 130
    x0_0 = tl.load(x0_ptr + 130 * program + step, mask=in_step, other=float("-inf"))
    peak1 = tl.reduce(x0_0, axis=0, combine_fn=higher)
    sub2 = x0_0 - peak1
    exp_nonpositive3 = tl.exp(sub2)
    sum4 = tl.sum(tl.where(in_step, exp_nonpositive3, 0.0), axis=0)
    tl.store(out0_ptr + 130 * program + step, sub2 - tl.log(sum4), mask=in_step)


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
        out0 = torch.empty((4, 130), dtype=torch.float32, device=device)
        rows_1[(4,)](x0, out0)
        return out0
