"""Doubles its input in place; is right otherwise."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
