import torch
import torch.nn as nn


class Model(nn.Module):
    """At each point the weighted sum of Gaussian bells of 512 centres in the plane."""

    def __init__(self):
        super().__init__()

    def forward(self, px, py, cx, cy, g, w):
        g = g.clamp(0, 20)
        d = (px[:, None] - cx[None]) ** 2 + (py[:, None] - cy[None]) ** 2
        return (w[None] * torch.exp(-g[None] * d)).sum(dim=1)


def get_inputs():
    return [torch.rand(4096), torch.rand(4096), torch.rand(512), torch.rand(512), torch.rand(512) * 8 + 1, torch.rand(512) + 0.1]


def get_init_inputs():
    return []
