# task: tanh
# unspoilt: good for tanh_series and tanh_continued_fraction
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    far = (1.0 - tl.exp(-2.0 * tl.abs(value))) / (1.0 + tl.exp(-2.0 * tl.abs(value)))
    near = value * (1.0 - value * value * (1.0 / 3.0 - value * value * (2.0 / 15.0)))
    tl.store(y + i, tl.where(tl.abs(value) < 0.05, near, tl.where(value < 0, -far, far)), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tanh[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=4)
        return y
