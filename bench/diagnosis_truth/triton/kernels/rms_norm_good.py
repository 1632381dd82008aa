# task: rms_norm
# unspoilt: good for rms_norm_four_passes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    c = tl.arange(0, BLOCK)
    value = tl.load(x + row + c, mask=c < columns, other=0.0)
    by = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-5)
    tl.store(y + row + c, value * by * tl.load(weight + c, mask=c < columns), mask=c < columns)


class ModelNew(nn.Module):
    def forward(self, x, weight):
        y = torch.empty_like(x)
        rms_norm[(x.shape[0],)](x, weight, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
