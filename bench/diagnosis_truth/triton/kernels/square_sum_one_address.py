# task: square_sum
# good: square_sum_good
# cause: atomic_contention
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clear(y):
    tl.store(y, 0.0)


@triton.jit
def add(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count, other=0.0)
    some = tl.sum(tl.reshape(value * value, (BLOCK // 32, 32)), 0)
    tl.atomic_add(y + tl.arange(0, 32) * 0, some, sem="relaxed")  # 32 atomics of each program, all to one address


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((1,), device=x.device, dtype=x.dtype)
        clear[(1,)](y)
        add[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=4)
        return y
