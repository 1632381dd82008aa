"""Rows scaled and turned into probabilities: the task that the hostile candidates of this folder pretend to do."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return torch.softmax(x * self.scale, dim=1)


def get_inputs():
    return [torch.randn(2048, 4096)]


def get_init_inputs():
    return [0.5]
