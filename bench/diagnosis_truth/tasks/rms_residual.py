import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, residual, weight):
        return residual + x * torch.rsqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5) * weight


def get_inputs():
    return [torch.randn(512, 2048), torch.randn(512, 2048), torch.randn(2048)]


def get_init_inputs():
    return []
