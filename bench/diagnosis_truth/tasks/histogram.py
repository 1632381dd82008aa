import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.bincount((x * 8 + 32).clamp(0, 63).long().reshape(-1), minlength=64).float()


def get_inputs():
    return [torch.relu(torch.randn(1024, 1024) - 0.5)]


def get_init_inputs():
    return []
