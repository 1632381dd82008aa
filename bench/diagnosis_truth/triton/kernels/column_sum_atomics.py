# task: column_sum
# good: column_sum_good
# cause: atomic_contention
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clear(y, COLUMNS: tl.constexpr):
    tl.store(y + tl.arange(0, COLUMNS), tl.zeros((COLUMNS,), tl.float32))


@triton.jit
def add(x, y, COLUMNS: tl.constexpr):
    c = tl.arange(0, COLUMNS)
    tl.atomic_add(y + c, tl.load(x + tl.program_id(0) * COLUMNS + c), sem="relaxed")  # each row adds to the same 128 sums


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((columns,), device=x.device, dtype=x.dtype)
        clear[(1,)](y, COLUMNS=columns)
        add[(rows,)](x, y, COLUMNS=columns, num_warps=1)
        return y
