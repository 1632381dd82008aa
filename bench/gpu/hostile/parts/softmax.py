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


def callers():
    """The frames of those who called us: where the program that runs us can still be found."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def runner():
    """The object that runs us. RuntimeError where it is not to be found: `run` takes that for an attack that was never made."""
    for frame in callers():
        if type(frame.f_locals.get("self")).__name__ == "Runner":
            return frame.f_locals["self"]
    raise RuntimeError("@NO_RUNNER@")
