# task: scores
# unspoilt: good for scores_outer_products
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scores(q, k, out, ROWS: tl.constexpr, INNER: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    left = q + batch * ROWS * INNER + rows[:, None] * INNER
    right = k + batch * ROWS * INNER + columns[None, :] * INNER
    total = tl.zeros((TILE, TILE), tl.float32)
    for first in range(0, INNER, STEP):
        d = first + tl.arange(0, STEP)
        total = tl.dot(tl.load(left + d[None, :]), tl.load(right + d[:, None]), total)
    tl.store(out + batch * ROWS * ROWS + rows[:, None] * ROWS + columns[None, :], total.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, q, k):
        batches, rows, inner = q.shape
        out = torch.empty((batches, rows, rows), device=q.device, dtype=q.dtype)
        scores[(rows // 128, rows // 128, batches)](q, k, out, ROWS=rows, INNER=inner, TILE=128, STEP=64, num_warps=8, num_stages=3)
        return out
