# Task: max_with_places
# Reference: aten.max.dim
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":8},{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":2048,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def higher_place(a, i, b, j):
    # The first of equals; NaN is above all numbers.
    equal = (a == b) | ((a != a) & (b != b))
    take = (a > b) | ((a != a) & (b == b)) | (equal & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


# Region 1: 5 x 1300 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 2048}, num_warps=4, num_stages=1),
        triton.Config({"STEPS": 2048}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 2048}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, out1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 1300
    x0_0 = tl.load(x0_ptr + 1300 * program + step, mask=in_step, other=float("-inf"))
    max1 = tl.reduce(x0_0, axis=0, combine_fn=higher)
    argmax2_tile = tl.broadcast_to(x0_0, [STEPS])
    argmax2_place_tile = tl.broadcast_to(tl.cast(step, tl.int32), [STEPS])
    argmax2, argmax2_place = tl.reduce((argmax2_tile, argmax2_place_tile), axis=0, combine_fn=higher_place)
    tl.store(out0_ptr + program, max1)
    tl.store(out1_ptr + program, tl.cast(argmax2_place, tl.int64))


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
        out0 = torch.empty((5,), dtype=torch.float32, device=device)
        out1 = torch.empty((5,), dtype=torch.int64, device=device)
        rows_1[(5,)](x0, out0, out1)
        return out0, out1
