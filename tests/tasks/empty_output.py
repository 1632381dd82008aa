"""One of its dimensions is empty."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 0)]


def get_init_inputs():
    return []
