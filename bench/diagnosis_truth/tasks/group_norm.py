import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, weight, bias):
        return F.group_norm(x, 8, weight, bias)


def get_inputs():
    return [torch.randn(8, 64, 32, 32), torch.randn(64), torch.randn(64)]


def get_init_inputs():
    return []
