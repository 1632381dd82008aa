# Task: cross_entropy_long
# Reference: aten._log_softmax.default, aten.eq.Scalar, aten.sum.dim_IntList, aten.neg.default,
#    aten.zeros_like.default, aten.where.self, aten.bitwise_not.default, aten._to_copy.default,
#    aten.sum.default, aten.sum.default, aten.div.Tensor, aten.nll_loss_forward.default, aten.mul.Tensor,
#    aten.mul.Tensor, aten.add.Tensor
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":16},{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":4}],"block":{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":8},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":512,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":512,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: 300 x 3001 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 4096}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=16, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=4, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, x1_ptr, scratch0_ptr, scratch1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 3001
    x0_11 = tl.load(x0_ptr + 3001 * program + step, mask=in_step, other=float("-inf"))
    peak12 = tl.reduce(x0_11, axis=0, combine_fn=higher)
    sub14 = x0_11 - peak12
    exp_nonpositive15 = tl.exp(sub14)
    sum16 = tl.sum(tl.where(in_step, exp_nonpositive15, 0.0), axis=0)
    sum23 = tl.sum(tl.where(in_step, sub14, 0.0), axis=0)
    x1_0 = tl.load(x1_ptr + program)
    ne2 = x1_0 != (-100)
    max_or_second8 = tl.where(x1_0 < 0, 0, x1_0)
    min_or_second9 = tl.where(max_or_second8 > 3000, 3000, max_or_second8)
    x0_10 = tl.load(x0_ptr + 3001 * program + min_or_second9)
    log17 = tl.log(sum16)
    mul19 = tl.where(ne2, 1.0, 0.0) * ((x0_10 - peak12) - log17)
    tl.store(scratch0_ptr + program, tl.where(ne2, -mul19, 0.0))
    select28 = tl.where(x1_0 == (-100), 0.0, -(sum23 - (log17 * 3001.0)))
    tl.store(scratch1_ptr + program, select28)


# Region 2: 300 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 512}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 512}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_2(x1_ptr, out0_ptr, scratch0_ptr, scratch1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 300
    scratch0_0 = tl.load(scratch0_ptr + step, mask=in_step, other=0.0)
    sum1 = tl.sum(scratch0_0, axis=0)
    x1_2 = tl.load(x1_ptr + step, mask=in_step, other=0)
    ne4 = x1_2 != (-100)
    select7 = tl.where(ne4, 1.0, 0.0)
    sum8 = tl.sum(tl.where(in_step, select7, 0.0), axis=0)
    scratch1_12 = tl.load(scratch1_ptr + step, mask=in_step, other=0.0)
    sum13 = tl.sum(scratch1_12, axis=0)
    convert14 = tl.cast(ne4, tl.float32)
    sum15 = tl.sum(tl.where(in_step, convert14, 0.0), axis=0)
    add19 = ((sum1 / sum8) * 0.9) + ((sum13 / sum15) * 3.33222259e-05)
    tl.store(out0_ptr, add19)


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
        scratch0 = torch.empty(300, dtype=torch.float32, device=device)
        scratch1 = torch.empty(300, dtype=torch.float32, device=device)
        rows_1[(300,)](x0, x1, scratch0, scratch1)
        rows_2[(1,)](x1, out0, scratch0, scratch1)
        return out0
