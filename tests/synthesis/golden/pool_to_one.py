# Task: pool_to_one
# Reference: aten.exp.default, aten.avg_pool2d.default, aten.max_pool2d_with_indices.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":4,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":4,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher_place(a, i, b, j):
    # The first of equals; NaN is above all numbers.
    equal = (a == b) | ((a != a) & (b != b))
    take = (a > b) | ((a != a) & (b == b)) | (equal & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


# Region 1: 2 (reduced) x 2 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 4}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 4}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, out1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    step1 = step % 2
    step0 = step // 2
    x0_0 = tl.load(x0_ptr + 2 * step0 + step1)
    exp1 = tl.exp(x0_0)
    sum2 = tl.sum(exp1, axis=0)
    argmax5_tile = tl.broadcast_to(x0_0, [STEPS])
    argmax5_place_tile = tl.broadcast_to(tl.cast(2 * step0 + step1, tl.int32), [STEPS])
    argmax5, argmax5_place = tl.reduce((argmax5_tile, argmax5_place_tile), axis=0, combine_fn=higher_place)
    tl.store(out0_ptr, sum2 * 0.25)
    tl.store(out1_ptr, tl.cast(argmax5_place, tl.int64))


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
        out0 = torch.empty((1, 1, 1, 1), dtype=torch.float32, device=device)
        out1 = torch.empty((1, 1, 1, 1), dtype=torch.int64, device=device)
        rows_1[(1,)](x0, out0, out1)
        return out0, out1
