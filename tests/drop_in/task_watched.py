import collections
import dataclasses
import functools
import types

import torch
import torch.nn as nn


@dataclasses.dataclass(slots=True)
class Slotted:
    gain: float = 2.0


@dataclasses.dataclass
class Config:
    gain: float = 0.5


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def apply(self, x):
        return x * self.factor


class Same(nn.Module):
    def forward(self, x):
        return x * 1.0


Pair = collections.namedtuple("Pair", "weight number")
HALF, TABLE = 0.5, torch.full((64,), 1.0)
KEEP, ALSO = lambda x: x * 1.0, lambda x: x * 3.0


def plus(x):
    return x + HALF


class Model(nn.Module):
    """Of kernel_gate.cpp, as task_kept.py: what a model may keep that is in no dictionary of its own, weights in other places than their layers, and what lies outside of the model."""
    one = 1.0

    def __init__(self, features, slotted=None):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.register_buffer("shift", torch.ones(features))
        self.again = self.shift
        self.register_module("more", None)
        self.same, self.lid = Same(), nn.ReLU()
        self.slotted = slotted or Slotted()
        self.times, self.bound = Times(2.0), Times(1.0).apply
        self.configs = [Config(), Config(2.0)]
        self.deep = types.SimpleNamespace(a=types.SimpleNamespace(b=types.SimpleNamespace(c=types.SimpleNamespace(d=types.SimpleNamespace(gain=1.0)))))
        self.deep.itself = self.deep
        self.constants = {"ones": [torch.ones(features)]}
        self.hidden = [nn.Threshold(-1e9, 0.0)]
        self.order = [self.linear, self.lid]
        self.pair, self.named = Pair(self.linear.weight, 0.0), collections.OrderedDict(bias=self.linear.bias)
        self.product = functools.partial(nn.functional.linear, weight=self.linear.weight)
        weight = self.linear.weight
        self.closure = lambda x: nn.functional.linear(x, weight) * 0.0
        self.keep = KEEP

    def scaled(self, x):
        return x * self.slotted.gain * self.configs[0].gain * self.configs[1].gain * self.deep.a.b.c.d.gain

    def forward(self, x):
        y = x
        for layer in self.order:
            y = layer(y)
        y = y + 0.0 * (self.product(x) + self.closure(x) + nn.functional.linear(x, self.pair.weight, self.named["bias"]))
        y = self.keep(self.same(self.bound(self.times(self.scaled(plus(y))))))
        y = sum([y * self.one * self.constants["ones"][0] * TABLE for _ in range(1)]) + self.again + 3.0
        y = self.hidden[0](y) if self.more is None else self.more(y)
        return y if getattr(self, "mask", None) is None else y * self.mask


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return [64]
