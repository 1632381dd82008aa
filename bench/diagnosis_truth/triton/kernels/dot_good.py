# task: dot
# unspoilt: good for dot_serial_end
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def parts(x, y, part, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(part + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < count, other=0.0) * tl.load(y + i, mask=i < count, other=0.0), 0))


@triton.jit
def together(part, result, PARTS: tl.constexpr):
    tl.store(result, tl.sum(tl.load(part + tl.arange(0, PARTS)), 0))


class ModelNew(nn.Module):
    def forward(self, x, y):
        result = torch.empty((1,), device=x.device, dtype=x.dtype)
        count = triton.cdiv(x.numel(), 2048)
        part = torch.empty((count,), device=x.device, dtype=x.dtype)
        parts[(count,)](x, y, part, x.numel(), BLOCK=2048, num_warps=4)
        together[(1,)](part, result, PARTS=count, num_warps=8)
        return result
