# task: scale_half
# unspoilt: good for scale_half_one_element
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, (tl.load(x + i, mask=i < count).to(tl.float32) * 0.5 + 1.0).to(tl.float16), mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=4)
        return y
