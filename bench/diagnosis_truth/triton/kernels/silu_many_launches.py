# task: silu_small
# good: silu_good
# cause: launch_bound
# or: tail_effect
# held out: yes
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
        step = triton.cdiv(count, 32)
        for first in range(0, count, step):  # a launch for each 32nd of the rows
            silu[(triton.cdiv(step, 1024),)](x, y, first, min(count, first + step), BLOCK=1024, num_warps=4)
        return y
