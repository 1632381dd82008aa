import torch
import torch.nn as nn

ROWS, COLUMNS = 2048, 8192


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, weight):
        return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5) * weight


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs():
    return []
