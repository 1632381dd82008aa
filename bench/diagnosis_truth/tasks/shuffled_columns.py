import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        i = torch.arange(4096)
        return x[:, i * (i + 1) // 2 % 4096]  # each column once, in an order without a stride


def get_inputs():
    return [torch.randn(256, 4096)]


def get_init_inputs():
    return []
