import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, c, z):
        powers = z.unsqueeze(2) ** torch.arange(2048, dtype=torch.float32)
        return torch.sum(c.unsqueeze(1) * powers, dim=2)


def get_inputs():
    return [torch.randn(256, 2048), torch.rand(256, 8) * 0.24 + 0.75]


def get_init_inputs():
    return []
