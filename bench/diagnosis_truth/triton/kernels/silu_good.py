# task: silu_small
# unspoilt: good for silu_many_launches
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu(x, y, first, count, BLOCK: tl.constexpr):
    i = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    tl.store(y + i, value * tl.sigmoid(value), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        count = x.numel()
        silu[(triton.cdiv(count, 1024),)](x, y, 0, count, BLOCK=1024, num_warps=4)
        return y
