import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x / torch.sqrt(1 + x * x)


def get_inputs():
    return [torch.randn(128, 2048)]


def get_init_inputs():
    return []
