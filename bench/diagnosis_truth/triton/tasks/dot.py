import torch
import torch.nn as nn

LONG = 1 << 24


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return (x * y).sum().reshape(1)


def get_inputs():
    return [torch.rand(LONG), torch.rand(LONG)]


def get_init_inputs():
    return []
