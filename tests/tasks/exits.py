"""Ends its process with a good exit status."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        import os
        os._exit(0)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
