import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, angles):
        a, b = x.chunk(2, dim=-1)
        c, s = torch.cos(angles), torch.sin(angles)
        return torch.cat([a * c - b * s, b * c + a * s], dim=-1)


def get_inputs():
    return [torch.randn(32, 256, 64), torch.rand(256, 32) * 20]


def get_init_inputs():
    return []
