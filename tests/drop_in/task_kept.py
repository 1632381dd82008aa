import dataclasses
import enum
import functools

import torch
import torch.nn as nn


@dataclasses.dataclass
class Config:
    gain: float = 4.0


class Kind(enum.Enum):
    TWICE = 2
    ONCE = 1


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter("more", None)

    def forward(self, x):
        return x if self.more is None else x + self.more


def times(factor, x):
    return x * factor


HALF = 0.5


class Model(nn.Module):
    """Of kernel_gate.cpp: what it computes stands in all that a model may keep beside its state, and comes back in a tuple of one."""

    def __init__(self, features, config=None, kind=Kind.TWICE, graph=2):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.register_buffer("shift", torch.ones(features))
        self.register_buffer("mask", None)
        self.again = Shift()
        self.config = config or Config()
        self.kind = kind
        self.graph = graph
        self.steps = range(1)
        self.numbers = {"one": 1.0, "three": 3.0}
        self.weights = [self.linear.weight]
        self.times = functools.partial(times, 0.5)

    def scaled(self, x):
        return x * self.config.gain * self.kind.value

    def forward(self, x, *, flip=False):
        y = torch.relu(nn.functional.linear(x, self.weights[0], self.linear.bias)) + HALF
        for _ in self.steps:
            y = self.times(self.scaled(y)) * self.graph * 0.5
        y = self.again(y + self.shift) * self.numbers["one"] + self.numbers["three"]
        y = y if self.mask is None else y * self.mask
        return (-y if flip else y,)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
