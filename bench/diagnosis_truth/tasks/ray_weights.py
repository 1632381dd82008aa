import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """How much each of 512 samples along 1024 rays counts: alpha times what all samples before let through. alpha[sample][ray]."""

    def __init__(self):
        super().__init__()

    def forward(self, alpha):
        a = alpha.clamp(0, 1)
        through = torch.cumprod(1 - a, dim=0)
        before = torch.cat([torch.ones_like(a[:1]), through[:-1]], dim=0)
        return a * before


def get_inputs():
    return [torch.rand(512, 1024) * 0.4]


def get_init_inputs():
    return []
