# task: halves
# unspoilt: good for halves_apart
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halves(x, y, rows, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, half = i // (2 * SIDE), i // SIDE % 2
    tl.store(y + half * rows * SIDE + row * SIDE + i % SIDE, tl.load(x + i))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, _, side = x.shape
        y = torch.empty((2, rows, side), device=x.device, dtype=x.dtype)
        halves[(x.numel() // 2048,)](x, y, rows, SIDE=side, BLOCK=2048, num_warps=4)
        return y
