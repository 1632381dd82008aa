# task: row_sum
# good: row_sum_good
# cause: latency_bound
# or: occupancy_limited
# held out: yes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum(x, y, columns, BLOCK: tl.constexpr):
    total = 0.0
    for first in range(0, columns, BLOCK):  # one warp a row, which waits for each 128 elements and their sum
        c = first + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + tl.program_id(0) * columns + c, mask=c < columns, other=0.0), 0)
    tl.store(y + tl.program_id(0), total)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((x.shape[0],), device=x.device, dtype=x.dtype)
        row_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=128, num_warps=1)
        return y
