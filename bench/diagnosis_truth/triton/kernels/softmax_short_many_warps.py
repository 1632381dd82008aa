# task: softmax_short
# good: softmax_short_good
# cause: latency_bound
# or: occupancy_limited
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(x + i)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + i, value / tl.sum(value, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, COLUMNS=x.shape[1], num_warps=16)  # 512 threads for 128 elements, and barriers between them
        return y
