# task: column_sum
# unspoilt: good for column_sum_atomics
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def parts(x, part, rows, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    c = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        r = first + tl.arange(0, ROWS)
        total += tl.load(x + r[:, None] * COLUMNS + c[None, :], mask=r[:, None] < rows, other=0.0)
    tl.store(part + tl.program_id(0) * COLUMNS + c, tl.sum(total, 0))


@triton.jit
def together(part, y, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    c = tl.program_id(0) * 4 + tl.arange(0, 4)
    tl.store(y + c, tl.sum(tl.load(part + tl.arange(0, PARTS)[:, None] * COLUMNS + c[None, :]), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((columns,), device=x.device, dtype=x.dtype)
        part = torch.empty((1024, columns), device=x.device, dtype=x.dtype)
        parts[(1024,)](x, part, rows, COLUMNS=columns, ROWS=32, num_warps=4)
        together[(columns // 4,)](part, y, COLUMNS=columns, PARTS=1024, num_warps=4)
        return y
