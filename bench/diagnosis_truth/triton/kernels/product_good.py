# task: product
# unspoilt: good for the other products
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, INNER: tl.constexpr, WIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, INNER, BK):
        k = first + tl.arange(0, BK)
        total = tl.dot(tl.load(a + m[:, None] * INNER + k[None, :]), tl.load(b + k[:, None] * WIDTH + n[None, :]), total)
    tl.store(c + m[:, None] * WIDTH + n[None, :], total.to(tl.float16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (rows, inner), width = a.shape, b.shape[1]
        c = torch.empty((rows, width), device=a.device, dtype=a.dtype)
        product[(width // 128, rows // 128)](a, b, c, INNER=inner, WIDTH=width, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
        return c
