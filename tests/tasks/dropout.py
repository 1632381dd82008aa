"""Draws random numbers."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, training=True)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
