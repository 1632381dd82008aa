"""Which branch is taken depends on the values."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) if float(x.sum()) > -1e9 else x


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
