"""Has a number for an argument and nothing else."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, n):
        return torch.arange(n, dtype=torch.float32) * 2


def get_inputs():
    return [64]


def get_init_inputs():
    return []
