# task: channel_scale
# good: channel_scale_good
# cause: uncoalesced_access
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, factor, offset, y, positions, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0)  # one channel of one image, so that neighbouring threads are CHANNELS elements apart
    image = tl.program_id(1) * positions * CHANNELS
    by, add = tl.load(factor + c), tl.load(offset + c)
    for first in range(0, positions, BLOCK):
        p = first + tl.arange(0, BLOCK)
        i = image + p * CHANNELS + c
        value = tl.load(x + i, mask=p < positions) * by + add
        tl.store(y + i, tl.maximum(value, 0.0), mask=p < positions)


class ModelNew(nn.Module):
    def forward(self, x, factor, offset):
        y = torch.empty_like(x)
        images, positions, channels = x.shape
        scale[(channels, images)](x, factor, offset, y, positions, CHANNELS=channels, BLOCK=1024, num_warps=4)
        return y
