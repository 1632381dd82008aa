# task: product
# good: product_persistent_good
# cause: tail_effect
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, ROWS: tl.constexpr, INNER: tl.constexpr, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across: tl.constexpr = WIDTH // BN
    for tile in range(tl.program_id(0), ROWS // BM * across, tl.num_programs(0)):
        m = tile // across * BM + tl.arange(0, BM)
        n = tile % across * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for first in range(0, INNER, BK):
            k = first + tl.arange(0, BK)
            total = tl.dot(tl.load(a + m[:, None] * INNER + k[None, :]), tl.load(b + k[:, None] * WIDTH + n[None, :]), total)
        tl.store(c + m[:, None] * WIDTH + n[None, :], total.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (rows, inner), width = a.shape, b.shape[1]
        c = torch.empty((rows, width), device=a.device, dtype=a.dtype)
        product[(144,)](a, b, c, ROWS=rows, INNER=inner, WIDTH=width, BM=128, BN=128, BK=64, num_warps=8, num_stages=4)  # the whole die has 144 multiprocessors, an H200 132: twelve programs begin late
        return c
