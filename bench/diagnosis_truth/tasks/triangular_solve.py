import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, l, b):
        l = torch.tril(l, -1) * 0.1 + torch.diag(torch.abs(torch.diagonal(l)) + 1)
        return torch.linalg.solve_triangular(l, b, upper=False)


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 8192)]


def get_init_inputs():
    return []
