# task: softplus
# unspoilt: good for softplus_float64
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softplus(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    tl.store(y + i, (tl.maximum(value, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(value)))).to(tl.float32), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softplus[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024, num_warps=4)
        return y
