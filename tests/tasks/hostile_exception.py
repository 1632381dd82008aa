"""Raises with a text that a terminal would obey."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        raise RuntimeError("\x1b]0;owned\x07 \x1b[2J \u009b31m \u202egnp.exe")


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
