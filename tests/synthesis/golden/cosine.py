# Task: cosine
# Reference: aten.expand.default, aten.expand.default, aten.pow.Tensor_Scalar, aten.sum.dim_IntList,
#    aten.pow.Tensor_Scalar, aten.sum.dim_IntList, aten.clamp_min.default, aten.clamp_min.default,
#    aten.sqrt.default, aten.sqrt.default, aten.div.Tensor, aten.div.Tensor, aten.mul.Tensor,
#    aten.sum.dim_IntList, aten.rsub.Scalar, aten.mean.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":16,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":16,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 9 x 50 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 64}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 64}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, x1_ptr, scratch0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 50
    x0_1 = tl.load(x0_ptr + 50 * program + step, mask=in_step, other=0.0)
    mul3 = x0_1 * x0_1
    sum4 = tl.sum(tl.where(in_step, mul3, 0.0), axis=0)
    x1_8 = tl.load(x1_ptr + 50 * program + step, mask=in_step, other=0.0)
    mul9 = x1_8 * x1_8
    sum10 = tl.sum(tl.where(in_step, mul9, 0.0), axis=0)
    max_or_second5 = tl.where(sum4 < 1e-16, 1e-16, sum4)
    max_or_second11 = tl.where(sum10 < 1e-16, 1e-16, sum10)
    mul14 = (x0_1 / tl.sqrt(max_or_second5)) * (x1_8 / tl.sqrt(max_or_second11))
    sum15 = tl.sum(tl.where(in_step, mul14, 0.0), axis=0)
    tl.store(scratch0_ptr + program, 1.0 - sum15)


# Region 2: 9 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 16}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 16}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_2(out0_ptr, scratch0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 9
    scratch0_0 = tl.load(scratch0_ptr + step, mask=in_step, other=0.0)
    sum1 = tl.sum(scratch0_0, axis=0)
    tl.store(out0_ptr, sum1 / 9.0)


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
        x1 = tensors[1]
        out0 = torch.empty((), dtype=torch.float32, device=device)
        scratch0 = torch.empty(9, dtype=torch.float32, device=device)
        rows_1[(9,)](x0, x1, scratch0)
        rows_2[(1,)](out0, scratch0)
        return out0
