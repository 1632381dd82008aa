# task: softmax
# good: softmax_good
# cause: too_many_passes
# or: memory_bandwidth_bound
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def largest(x, top, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    tl.store(top + tl.program_id(0), tl.max(tl.load(x + tl.program_id(0) * columns + c, mask=c < columns, other=float("-inf")), 0))


@triton.jit
def exponential(x, top, e, columns, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(e + i, tl.exp(tl.load(x + i, mask=i < count) - tl.load(top + i // columns, mask=i < count)), mask=i < count)


@triton.jit
def divided(e, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    c = tl.arange(0, BLOCK)
    value = tl.load(e + row + c, mask=c < columns, other=0.0)
    tl.store(y + row + c, value / tl.sum(value, 0), mask=c < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y, e = torch.empty_like(x), torch.empty_like(x)
        rows, columns = x.shape
        top = torch.empty((rows,), device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(columns)
        largest[(rows,)](x, top, columns, BLOCK=block, num_warps=8)  # x is read twice, and the exponentials go through memory
        exponential[(triton.cdiv(x.numel(), 1024),)](x, top, e, columns, x.numel(), BLOCK=1024, num_warps=4)
        divided[(rows,)](e, y, columns, BLOCK=block, num_warps=8)
        return y
