import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The envelope of 64 channels that a short sound begins."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        e = torch.zeros(x.shape[1])
        y = []
        for t in range(x.shape[0]):
            e = torch.maximum(x[t].abs(), e * 0.9)
            y.append(e)
        return torch.stack(y, dim=0)


def get_inputs():
    return [torch.randn(8192, 64) * (torch.arange(8192) < 64).float().unsqueeze(1)]


def get_init_inputs():
    return []
