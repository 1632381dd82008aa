# Task: argmin_last
# Reference: aten.argmin.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def lower_place(a, i, b, j):
    # The first of equals; NaN is below all numbers.
    equal = (a == b) | ((a != a) & (b != b))
    take = (a < b) | ((a != a) & (b == b)) | (equal & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


# Region 1: 57 x 67 (reduced)
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
    in_step = step < 67
    x0_0 = tl.load(x0_ptr + 67 * program + step, mask=in_step, other=float("inf"))
    argmin1_tile = tl.broadcast_to(x0_0, [STEPS])
    argmin1_place_tile = tl.broadcast_to(tl.cast(step, tl.int32), [STEPS])
    argmin1, argmin1_place = tl.reduce((argmin1_tile, argmin1_place_tile), axis=0, combine_fn=lower_place)
    tl.store(out0_ptr + program, tl.cast(argmin1_place, tl.int64))


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
        out0 = torch.empty((3, 19), dtype=torch.int64, device=device)
        rows_1[(57,)](x0, out0)
        return out0
