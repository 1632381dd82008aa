# task: halves
# good: halves_good
# cause: uncoalesced_access
# or: too_many_passes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halves(x, y, rows, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    half = tl.program_id(1)  # all first halves, then all second ones: each sector is fetched twice, and half of it used
    tl.store(y + half * rows * SIDE + i, tl.load(x + i // SIDE * 2 * SIDE + half * SIDE + i % SIDE))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, _, side = x.shape
        y = torch.empty((2, rows, side), device=x.device, dtype=x.dtype)
        halves[(x.numel() // 4096, 2)](x, y, rows, SIDE=side, BLOCK=2048, num_warps=4)
        return y
