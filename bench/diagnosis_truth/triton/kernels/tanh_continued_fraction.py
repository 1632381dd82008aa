# task: tanh
# good: tanh_good
# cause: compute_bound
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    x1 = tl.minimum(tl.maximum(value, -10.0), 10.0)
    below = x1 * 0.0 + 41.0
    for k in tl.static_range(39, 0, -2):  # Lambert's continued fraction: twenty divisions for each element
        below = k + tl.div_rn(x1 * x1, below)
    tl.store(y + i, tl.div_rn(x1, below), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        tanh[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=4)
        return y
