# Task: product_summed
# Reference: aten.t.default, aten.addmm.default, aten.sub.Tensor, aten.mean.dim
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":32,"stages":1,"steps":64,"warps":8},{"columns":1,"lanes":32,"stages":1,"steps":64,"warps":2}],"block":{"columns":1,"lanes":32,"stages":1,"steps":64,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 45 (reduced) x 70
@triton.autotune(
    configs=[
        triton.Config({"LANES": 32, "STEPS": 64}, num_warps=4, num_stages=1),
        triton.Config({"LANES": 32, "STEPS": 64}, num_warps=8, num_stages=1),
        triton.Config({"LANES": 32, "STEPS": 64}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(p0_ptr, scratch0_ptr, LANES: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))[:, None]
    in_lane = lane < 70
    step = tl.arange(0, STEPS)[None, :]
    in_step = step < 45
    p0_0 = tl.load(p0_ptr + 70 * step + lane, mask=in_step & in_lane, other=0.0)
    sum1 = tl.sum(p0_0, axis=1)[:, None]
    tl.store(scratch0_ptr + lane, sum1, mask=in_lane)


# Region 2: 45 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 64}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 64}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_2(p1_ptr, scratch1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 45
    p1_0 = tl.load(p1_ptr + step, mask=in_step, other=0.0)
    sum1 = tl.sum(p1_0, axis=0)
    tl.store(scratch1_ptr, sum1)


# Region 3: 13 x 70 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 128}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 128}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_3(x0_ptr, out0_ptr, scratch0_ptr, scratch1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 70
    x0_0 = tl.load(x0_ptr + 70 * program + step, mask=in_step, other=0.0)
    scratch0_1 = tl.load(scratch0_ptr + step, mask=in_step, other=0.0)
    mul2 = x0_0 * scratch0_1
    sum3 = tl.sum(tl.where(in_step, mul2, 0.0), axis=0)
    scratch1_4 = tl.load(scratch1_ptr)
    tl.store(out0_ptr + program, ((sum3 + scratch1_4) - 45.0) / 45.0)


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
        out0 = torch.empty((13, 1), dtype=torch.float32, device=device)
        scratch0 = torch.empty(70, dtype=torch.float32, device=device)
        scratch1 = torch.empty(1, dtype=torch.float32, device=device)
        rows_1[lambda meta: (triton.cdiv(70, meta["LANES"]),)](p0, scratch0)
        rows_2[(1,)](p1, scratch1)
        rows_3[(13,)](x0, out0, scratch0, scratch1)
        return out0
