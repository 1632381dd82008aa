# task: bias_small
# unspoilt: good for bias_small_five_launches
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def all_at_once(x, bias, factor, y, columns, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = i % columns
    value = tl.maximum(tl.load(x + i, mask=i < count) + tl.load(bias + c, mask=i < count), 0.0)
    tl.store(y + i, tl.sigmoid(value * tl.load(factor + c, mask=i < count) - 1.0), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x, bias, factor):
        y = torch.empty_like(x)
        all_at_once[(triton.cdiv(x.numel(), 1024),)](x, bias, factor, y, x.shape[1], x.numel(), BLOCK=1024, num_warps=4)
        return y
