"""Gets a sparse tensor."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sparse.sum(x)


def get_inputs():
    return [torch.randn(8, 16).to_sparse()]


def get_init_inputs():
    return []
