# task: tanh
# good: tanh_good
# cause: compute_bound
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exp_of_negative(t, TERMS: tl.constexpr):
    t = tl.maximum(t, -40.0) * (1.0 / 64.0)
    total = t * 0.0 + 1.0
    for k in tl.static_range(TERMS, 0, -1):  # ten terms would do
        total = 1.0 + total * t * (1.0 / k)
    for _ in tl.static_range(6):
        total = total * total
    return total


@triton.jit
def tanh(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    e = exp_of_negative(-2.0 * tl.abs(value), 160)
    far = (1.0 - e) / (1.0 + e)
    near = value * (1.0 - value * value * (1.0 / 3.0 - value * value * (2.0 / 15.0)))
    tl.store(y + i, tl.where(tl.abs(value) < 0.05, near, tl.where(value < 0, -far, far)), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tanh[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=4)
        return y
