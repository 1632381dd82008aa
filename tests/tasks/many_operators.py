"""Thirty thousand operators a call, more than a profile of them could be read of in a second."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(30000 if x.sum() > 0 else 1):  # no graph: it depends on the values
            x = x * 0.9999
        return x


def get_inputs():
    return [torch.rand(8)]


def get_init_inputs():
    return []
