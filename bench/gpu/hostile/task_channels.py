"""Channels scaled by weights of which one is five million times the others."""
import torch
import torch.nn as nn

LARGE = 17


def channels(columns):
    weight = torch.full((columns,), 0.02)
    weight[LARGE] = 1e5
    return weight


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(channels(columns))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
