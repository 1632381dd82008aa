"""Prints a lot on standard output; is right otherwise."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        print('hello' * 1000)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
