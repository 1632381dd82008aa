"""Average pooling of feature maps with overlapping, padded windows."""
import torch
import torch.nn as nn

batch = 4
channels = 48
side = 112


class Model(nn.Module):
    def __init__(self, window, stride, padding):
        super().__init__()
        self.pool = nn.AvgPool2d(window, stride=stride, padding=padding)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [5, 2, 2]
