# task: softmax
# unspoilt: good for softmax_three_kernels
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    c = tl.arange(0, BLOCK)
    value = tl.load(x + row + c, mask=c < columns, other=float("-inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(y + row + c, value / tl.sum(value, 0), mask=c < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
