# task: bias_small
# good: bias_small_good
# cause: launch_bound
# or: tail_effect
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(x, other, y, columns, count, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < count)
    if KIND == 0:
        value = value + tl.load(other + i % columns, mask=i < count)
    if KIND == 1:
        value = tl.maximum(value, 0.0)
    if KIND == 2:
        value = value * tl.load(other + i % columns, mask=i < count)
    if KIND == 3:
        value = value - 1.0
    if KIND == 4:
        value = tl.sigmoid(value)
    tl.store(y + i, value, mask=i < count)


class ModelNew(nn.Module):
    def forward(self, x, bias, factor):
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        step[grid](x, bias, y, x.shape[1], x.numel(), KIND=0, BLOCK=1024, num_warps=4)  # a launch for each operator
        step[grid](y, y, y, x.shape[1], x.numel(), KIND=1, BLOCK=1024, num_warps=4)
        step[grid](y, factor, y, x.shape[1], x.numel(), KIND=2, BLOCK=1024, num_warps=4)
        step[grid](y, y, y, x.shape[1], x.numel(), KIND=3, BLOCK=1024, num_warps=4)
        step[grid](y, y, y, x.shape[1], x.numel(), KIND=4, BLOCK=1024, num_warps=4)
        return y
