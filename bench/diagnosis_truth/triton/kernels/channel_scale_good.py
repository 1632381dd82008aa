# task: channel_scale
# unspoilt: good for channel_scale_one_channel
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, factor, offset, y, count, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = i % CHANNELS
    value = tl.load(x + i, mask=i < count) * tl.load(factor + c) + tl.load(offset + c)
    tl.store(y + i, tl.maximum(value, 0.0), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x, factor, offset):
        y = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 1024),)](x, factor, offset, y, x.numel(), CHANNELS=x.shape[2], BLOCK=1024, num_warps=4)
        return y
