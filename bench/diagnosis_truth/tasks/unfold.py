import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.unfold(x, 3)


def get_inputs():
    return [torch.randn(1, 16, 64, 64)]


def get_init_inputs():
    return []
