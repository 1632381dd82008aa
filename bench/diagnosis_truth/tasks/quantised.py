import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, scale):
        return torch.clamp(torch.round(x * (1 / scale)), -127, 127) * scale


def get_inputs():
    return [torch.randn(65536, 16), torch.rand(16) * 0.02 + 0.01]


def get_init_inputs():
    return []
