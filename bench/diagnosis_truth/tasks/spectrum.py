import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, lines):
        y = torch.zeros_like(x)
        for k in range(6):
            y = y + 1 / ((x - lines[k]) ** 2 + 1)
        return y


def get_inputs():
    return [torch.randn(256, 1024) * 3, torch.randn(6) * 3]


def get_init_inputs():
    return []
