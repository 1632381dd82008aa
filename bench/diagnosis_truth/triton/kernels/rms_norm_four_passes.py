# task: rms_norm
# good: rms_norm_good
# cause: too_many_passes
# or: memory_bandwidth_bound
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square(x, squares, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    tl.store(squares + i, value * value, mask=i < count)


@triton.jit
def factor(squares, factors, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    value = tl.load(squares + tl.program_id(0) * columns + c, mask=c < columns, other=0.0)
    tl.store(factors + tl.program_id(0), tl.rsqrt(tl.sum(value, 0) / columns + 1e-5))


@triton.jit
def by_row(x, factors, scaled, columns, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(scaled + i, tl.load(x + i, mask=i < count) * tl.load(factors + i // columns, mask=i < count), mask=i < count)


@triton.jit
def by_column(scaled, weight, y, columns, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(scaled + i, mask=i < count) * tl.load(weight + i % columns, mask=i < count), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x, weight):
        y, squares, scaled = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
        rows, columns = x.shape
        factors = torch.empty((rows,), device=x.device, dtype=x.dtype)
        blocks = (triton.cdiv(x.numel(), 1024),)
        square[blocks](x, squares, x.numel(), BLOCK=1024, num_warps=4)  # each step stores all elements, and the next one reads them
        factor[(rows,)](squares, factors, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        by_row[blocks](x, factors, scaled, columns, x.numel(), BLOCK=1024, num_warps=4)
        by_column[blocks](scaled, weight, y, columns, x.numel(), BLOCK=1024, num_warps=4)
        return y
