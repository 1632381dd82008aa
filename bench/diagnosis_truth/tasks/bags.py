import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, u, table):
        picked = (u * 64).long().clamp(0, 63)
        return table[picked].sum(dim=1)


def get_inputs():
    return [torch.rand(4096, 32), torch.randn(64, 64)]


def get_init_inputs():
    return []
