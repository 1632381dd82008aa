"""A style-transfer layer: reflection padding, a convolution, instance norm, ReLU."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = nn.ReflectionPad2d(1)
        self.conv = nn.Conv2d(32, 32, 3)
        self.norm = nn.InstanceNorm2d(32, affine=True)

    def forward(self, x):
        return F.relu(self.norm(self.conv(self.pad(x))))


def get_inputs():
    return [torch.randn(2, 32, 64, 64)]


def get_init_inputs():
    return []
