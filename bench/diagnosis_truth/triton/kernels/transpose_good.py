# task: transpose
# unspoilt: good for transpose_columns
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, columns, TILE: tl.constexpr):
    r = tl.program_id(1) * TILE + tl.arange(0, TILE)
    c = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tile = tl.load(x + r[:, None] * columns + c[None, :])
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(tile))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((columns, rows), device=x.device, dtype=x.dtype)
        transpose[(columns // 64, rows // 64)](x, y, rows, columns, TILE=64, num_warps=8)
        return y
