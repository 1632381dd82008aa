import torch
import torch.nn as nn


class Model(nn.Module):
    """The whole Haar transform of each row of 2048, the details of each level by a gain of its own."""

    def __init__(self):
        super().__init__()

    def forward(self, x, gain):
        parts = []
        for level in range(gain.shape[0]):
            even, odd = x[:, 0::2], x[:, 1::2]
            parts.append((even - odd) * (0.70710678 * gain[level]))
            x = (even + odd) * 0.70710678
        return torch.cat([x] + parts[::-1], dim=1)


def get_inputs():
    return [torch.randn(512, 2048), torch.rand(11) + 0.5]


def get_init_inputs():
    return []
