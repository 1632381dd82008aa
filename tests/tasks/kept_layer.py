"""A function that keeps layers: a copy of the model would call the first one's."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"up": nn.Linear(16, 32), "down": nn.Linear(32, 16)})
        layers = self.layers
        self.block = lambda x: layers.down(torch.tanh(layers.up(x)))

    def forward(self, x):
        return x + self.block(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
