import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, t, values):
        return values[torch.bucketize(x, torch.sort(t)[0])]


def get_inputs():
    return [torch.randn(256, 512), torch.randn(63), torch.randn(64)]


def get_init_inputs():
    return []
