# Task: layer_norm
# Reference: aten.native_layer_norm.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 4 x 60 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 64}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 64}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, p0_ptr, p1_ptr, out0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 60
    x0_0 = tl.load(x0_ptr + 60 * program + step, mask=in_step, other=0.0)
    sum1 = tl.sum(x0_0, axis=0)
    sub4 = x0_0 - (sum1 / 60.0)
    mul5 = sub4 * sub4
    sum6 = tl.sum(tl.where(in_step, mul5, 0.0), axis=0)
    add9 = (sum6 / 60.0) + 1e-05
    p0_12 = tl.load(p0_ptr + step, mask=in_step, other=0.0)
    p1_14 = tl.load(p1_ptr + step, mask=in_step, other=0.0)
    tl.store(out0_ptr + 60 * program + step, ((sub4 * tl.rsqrt(add9)) * p0_12) + p1_14, mask=in_step)


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
        p0 = self.params[0]
        p1 = self.params[1]
        out0 = torch.empty((4, 6, 10), dtype=torch.float32, device=device)
        rows_1[(4,)](x0, p0, p1, out0)
        return out0
