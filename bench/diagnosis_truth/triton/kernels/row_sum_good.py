# task: row_sum
# unspoilt: good for row_sum_short_steps and row_sum_few_programs
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum(x, y, columns, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * columns + c, mask=c < columns, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(value, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((x.shape[0],), device=x.device, dtype=x.dtype)
        row_sum[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
