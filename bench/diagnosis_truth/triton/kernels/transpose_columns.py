# task: transpose
# good: transpose_good
# cause: uncoalesced_access
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(1)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + c * rows + r, tl.load(x + r * columns + c, mask=c < columns), mask=c < columns)  # each element into another row


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty((columns, rows), device=x.device, dtype=x.dtype)
        transpose[(triton.cdiv(columns, 512), rows)](x, y, rows, columns, BLOCK=512, num_warps=4)
        return y
