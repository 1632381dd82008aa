import functools

import torch
import torch.nn as nn


def raised(steps, x):
    return x + steps


class Model(nn.Module):
    """With parameters, a buffer, an argument that only a function keeps, constants, and a constant argument of forward()."""

    def __init__(self, features, gain=2.0, eps=0.5, steps=3):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.register_buffer("shift", torch.ones(features))
        self.gain = gain
        self.eps = eps
        self.widths = [1, 2]
        self.drop = nn.Dropout(0.0)
        self.raised = functools.partial(raised, steps)

    def forward(self, x, scale):
        y = self.drop(torch.relu(self.linear(x)) + self.eps)
        y = self.raised(y * self.gain * scale + self.shift)
        return y if self.training else y * 0.5


def get_inputs():
    return [torch.randn(16, 64), 2.0]


def get_init_inputs():
    return [64]
