"""Its sidecar makes it smaller."""
import torch
import torch.nn as nn

rows = 1000000
columns = 1000000


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
