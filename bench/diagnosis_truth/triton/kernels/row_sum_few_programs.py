# task: row_sum
# good: row_sum_good
# cause: tail_effect
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum(x, y, rows, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + r * columns + c, mask=c < columns, other=0.0)
        tl.store(y + r, tl.sum(value, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((x.shape[0],), device=x.device, dtype=x.dtype)
        row_sum[(32,)](x, y, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)  # 32 programs for 132 multiprocessors
        return y
