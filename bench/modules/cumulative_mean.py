"""The running mean of a signal, and how far each value is from it."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        steps = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
        return x - torch.cumsum(x, dim=-1) / steps


def get_inputs():
    return [torch.randn(256, 2048)]


def get_init_inputs():
    return []
