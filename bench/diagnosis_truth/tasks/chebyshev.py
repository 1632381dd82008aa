import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A Chebyshev series of 128 terms at 65536 points, by Clenshaw's recurrence."""

    def __init__(self):
        super().__init__()

    def forward(self, x, c):
        x = x.clamp(-0.95, 0.95)
        b1, b2 = torch.zeros_like(x), torch.zeros_like(x)
        for k in range(c.shape[0] - 1, 0, -1):
            b1, b2 = 2 * x * b1 - b2 + c[k], b1
        return x * b1 - b2 + c[0]


def get_inputs():
    return [torch.rand(65536) * 2 - 1, torch.randn(128) / torch.arange(1, 129)]


def get_init_inputs():
    return []
