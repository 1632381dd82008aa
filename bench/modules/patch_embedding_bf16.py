"""A vision transformer's patches: a strided convolution, then tokens, in bfloat16."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 192, 16, stride=16)
        self.to(torch.bfloat16)

    def forward(self, x):
        return self.conv(x).flatten(2).transpose(1, 2)


def get_inputs():
    return [torch.randn(4, 3, 224, 224, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
