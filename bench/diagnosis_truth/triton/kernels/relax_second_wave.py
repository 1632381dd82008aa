# task: relax
# good: relax_good
# cause: tail_effect
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relax(x, y, count, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        goal = tl.load(x + i, mask=i < count)
        value = goal * 0.0
        for _ in range(STEPS):
            value = value + 0.02 * (goal - value)
        tl.store(y + i, value, mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relax[(140,)](x, y, x.numel(), STEPS=256, BLOCK=16384, num_warps=32)  # one fits on each of 132 multiprocessors: eight begin when the others are done
        return y
