# Task: cross_entropy
# Reference: aten._log_softmax.default, aten.nll_loss_forward.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":8,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":8,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":32,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":32,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: 30 x 7 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 8}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 8}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, x1_ptr, scratch0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 7
    x0_11 = tl.load(x0_ptr + 7 * program + step, mask=in_step, other=float("-inf"))
    peak12 = tl.reduce(x0_11, axis=0, combine_fn=higher)
    sub14 = x0_11 - peak12
    exp_nonpositive15 = tl.exp(sub14)
    sum16 = tl.sum(tl.where(in_step, exp_nonpositive15, 0.0), axis=0)
    x1_0 = tl.load(x1_ptr + program)
    ne2 = x1_0 != (-100)
    max_or_second8 = tl.where(x1_0 < 0, 0, x1_0)
    x0_10 = tl.load(x0_ptr + 7 * program + tl.where(max_or_second8 > 6, 6, max_or_second8))
    mul19 = tl.where(ne2, 1.0, 0.0) * ((x0_10 - peak12) - tl.log(sum16))
    tl.store(scratch0_ptr + program, tl.where(ne2, -mul19, 0.0))


# Region 2: 30 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 32}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 32}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_2(x1_ptr, out0_ptr, scratch0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 30
    scratch0_0 = tl.load(scratch0_ptr + step, mask=in_step, other=0.0)
    sum1 = tl.sum(scratch0_0, axis=0)
    x1_2 = tl.load(x1_ptr + step, mask=in_step, other=0)
    select7 = tl.where(x1_2 != (-100), 1.0, 0.0)
    sum8 = tl.sum(tl.where(in_step, select7, 0.0), axis=0)
    tl.store(out0_ptr, sum1 / sum8)


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
        scratch0 = torch.empty(30, dtype=torch.float32, device=device)
        rows_1[(30,)](x0, x1, scratch0)
        rows_2[(1,)](x1, out0, scratch0)
        return out0
