# task: softmax_short
# unspoilt: good for softmax_short_many_warps
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, rows, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = r[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + i, mask=r[:, None] < rows, other=0.0)
    value = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(y + i, value / tl.sum(value, 1)[:, None], mask=r[:, None] < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(triton.cdiv(x.shape[0], 16),)](x, y, x.shape[0], COLUMNS=x.shape[1], ROWS=16, num_warps=4)
        return y
