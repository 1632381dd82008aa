import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """What an adaptive filter of 16 taps (least mean squares) leaves of each signal."""

    def __init__(self):
        super().__init__()

    def forward(self, x, d):
        x = x.clamp(-3, 3)
        w = torch.zeros(x.shape[0], 16)
        y = []
        for t in range(d.shape[1]):
            taps = x[:, t:t + 16]
            e = d[:, t] - (w * taps).sum(dim=1)
            w = w + 0.01 * e.unsqueeze(1) * taps
            y.append(e)
        return torch.stack(y, dim=1)


def get_inputs():
    return [torch.randn(64, 1024 + 15), torch.randn(64, 1024)]


def get_init_inputs():
    return []
