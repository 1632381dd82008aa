import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, u, v):
        return u.unsqueeze(2) * v.unsqueeze(1)


def get_inputs():
    return [torch.randn(48, 384), torch.randn(48, 512)]


def get_init_inputs():
    return []
