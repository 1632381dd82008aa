# task: squares
# good: squares_good
# cause: bank_conflicts
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE * SIDE)
    base = tl.program_id(0) * SIDE * SIDE
    flat = tl.load(x + base + i)
    flat = tl.gather(flat, i % SIDE * SIDE + i // SIDE, 0)  # from shared memory: the threads of a warp 32 words apart, all in one bank
    tl.store(y + base + i, flat)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        transpose[(x.shape[0],)](x, y, SIDE=x.shape[1], num_warps=4)
        return y
