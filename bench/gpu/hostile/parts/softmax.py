# What the candidates for task.py share: `run` puts it before each of them.
import os
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row + i, mask=i < columns, other=float("-inf")) * scale
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row + i, v / tl.sum(v, 0), mask=i < columns)


def softmax(x, scale, y=None):
    y = torch.empty_like(x) if y is None else y
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], scale, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y


class Honest(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return softmax(x, self.scale)


def runner_module():
    """The module of the program that runs us."""
    return sys.modules["__main__"]


def running_object(kind):
    """An object of the program that runs us, by the name of its class."""
    import gc
    return next((o for o in gc.get_objects() if type(o).__name__ == kind), None)


