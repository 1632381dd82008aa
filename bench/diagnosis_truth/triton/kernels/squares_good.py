# task: squares
# unspoilt: good for squares_gathered
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, SIDE: tl.constexpr):
    r = tl.arange(0, SIDE)
    c = tl.arange(0, SIDE)
    base = tl.program_id(0) * SIDE * SIDE
    tile = tl.load(x + base + r[:, None] * SIDE + c[None, :])
    tl.store(y + base + c[:, None] * SIDE + r[None, :], tl.trans(tile))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        transpose[(x.shape[0],)](x, y, SIDE=x.shape[1], num_warps=4)
        return y
