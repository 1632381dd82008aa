# task: square_sum
# unspoilt: good for square_sum_one_address
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def parts(x, part, count, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < count, other=0.0)
        total += value * value
    tl.store(part + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def together(part, y, PARTS: tl.constexpr):
    tl.store(y, tl.sum(tl.load(part + tl.arange(0, PARTS)), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((1,), device=x.device, dtype=x.dtype)
        part = torch.empty((1024,), device=x.device, dtype=x.dtype)
        parts[(1024,)](x, part, x.numel(), BLOCK=4096, num_warps=8)
        together[(1,)](part, y, PARTS=1024, num_warps=4)
        return y
