"""Raises on line 8."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        raise ValueError('no such luck')


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
