import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        for _ in range(16):
            p = F.pad(x, (1, 1, 1, 1))
            x = x + 0.1 * (p[:, :-2, 1:-1] + p[:, 2:, 1:-1] + p[:, 1:-1, :-2] + p[:, 1:-1, 2:] - 4 * x)
        return x


def get_inputs():
    return [torch.randn(96, 64, 64)]


def get_init_inputs():
    return []
