# Task: quantised
# Reference: aten.abs.default, aten.amax.default, aten.div.Tensor, aten.div.Tensor, aten.round.default,
#    aten.clamp.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: 6 x 70 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 128}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 128}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 70
    x0_2 = tl.load(x0_ptr + 70 * program + step, mask=in_step, other=0.0)
    abs3 = tl.abs(x0_2)
    max4 = tl.reduce(tl.where(in_step, abs3, float("-inf")), axis=0, combine_fn=higher)
    exact_div5 = max4 * 0.00787401572
    exact_div6 = tl.div_rn(x0_2, exact_div5)
    round7 = libdevice.rint(exact_div6)
    max_or_second8 = tl.where(round7 < -127.0, -127.0, round7)
    min_or_second9 = tl.where(max_or_second8 > 127.0, 127.0, max_or_second8)
    tl.store(out0_ptr + 70 * program + step, min_or_second9, mask=in_step)


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
        out0 = torch.empty((6, 70), dtype=torch.float32, device=device)
        rows_1[(6,)](x0, out0)
        return out0
