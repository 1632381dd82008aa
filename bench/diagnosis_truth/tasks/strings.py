import torch
import torch.nn as nn


class Model(nn.Module):
    """Vibrating strings of 992 points between fixed ends: their shape after 256 steps of time."""

    def __init__(self):
        super().__init__()

    def forward(self, u, v, c):
        before = u - 0.05 * v
        zero = torch.zeros_like(u[:, :1])
        for _ in range(256):
            left = torch.cat([zero, u[:, :-1]], dim=1)
            right = torch.cat([u[:, 1:], zero], dim=1)
            u, before = 2 * u - before + c * (left - 2 * u + right), u
        return u


def get_inputs():
    return [torch.randn(16, 992), torch.randn(16, 992), torch.rand(992) * 0.8 + 0.1]


def get_init_inputs():
    return []
