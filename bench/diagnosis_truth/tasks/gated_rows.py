import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, gate):
        return torch.where(gate > 0, x * 0.5 + 1, x * x - 1)


def get_inputs():
    return [torch.randn(49152, 16), torch.randn(49152, 1)]


def get_init_inputs():
    return []
