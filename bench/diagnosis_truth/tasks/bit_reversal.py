import torch
import torch.nn as nn


class Model(nn.Module):
    """Values reordered as a radix-2 Fourier transform wants them: y[i] = x[i with its bits reversed]."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        bits = x.numel().bit_length() - 1
        return x.reshape([2] * bits).permute(*range(bits - 1, -1, -1)).reshape(-1)


def get_inputs():
    return [torch.randn(1 << 20)]


def get_init_inputs():
    return []
