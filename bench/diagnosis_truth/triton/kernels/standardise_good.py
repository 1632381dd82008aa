# task: standardise
# unspoilt: good for standardise_spilled
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def standardise(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    c = tl.arange(0, BLOCK)
    value = tl.load(x + row + c, mask=c < columns, other=0.0)
    centred = tl.where(c < columns, value - tl.sum(value, 0) / columns, 0.0)
    tl.store(y + row + c, centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5), mask=c < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        standardise[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
