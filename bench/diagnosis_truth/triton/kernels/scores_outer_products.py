# task: scores
# good: scores_good
# cause: tensor_cores_idle
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scores(q, k, out, ROWS: tl.constexpr, INNER: tl.constexpr, TILE: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    left = q + batch * ROWS * INNER + rows * INNER
    right = k + batch * ROWS * INNER + columns * INNER
    total = tl.zeros((TILE, TILE), tl.float32)
    for d in range(0, INNER):  # a sum of outer products: multiply-adds of the ordinary units
        total += tl.load(left + d).to(tl.float32)[:, None] * tl.load(right + d).to(tl.float32)[None, :]
    tl.store(out + batch * ROWS * ROWS + rows[:, None] * ROWS + columns[None, :], total.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, q, k):
        batches, rows, inner = q.shape
        out = torch.empty((batches, rows, rows), device=q.device, dtype=q.dtype)
        scores[(rows // 128, rows // 128, batches)](q, k, out, ROWS=rows, INNER=inner, TILE=128, num_warps=8)
        return out
