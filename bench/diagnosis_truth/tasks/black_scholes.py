import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Prices of European calls: rate 3%, volatility 20%."""

    def __init__(self):
        super().__init__()

    def forward(self, s, k, t):
        s, k, t = s.clamp(1, 1000), k.clamp(1, 1000), t.clamp(0.01, 10)
        root = torch.sqrt(t)
        d1 = (torch.log(s / k) + (0.03 + 0.5 * 0.2 * 0.2) * t) / (0.2 * root)
        d2 = d1 - 0.2 * root
        n1 = 0.5 * (1 + torch.erf(d1 * 0.7071067811865476))
        n2 = 0.5 * (1 + torch.erf(d2 * 0.7071067811865476))
        return s * n1 - k * torch.exp(-0.03 * t) * n2


def get_inputs():
    return [torch.rand(131072) * 50 + 75, torch.rand(131072) * 50 + 75, torch.rand(131072) * 1.9 + 0.1]


def get_init_inputs():
    return []
