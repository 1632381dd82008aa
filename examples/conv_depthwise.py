"""A depthwise 3x3 convolution with bias, as in mobile networks: one filter per channel."""
import torch
import torch.nn as nn

batch = 4
channels = 96
side = 56


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels]
