"""A residual network's convolution with BatchNorm in evaluation and ReLU, in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        self.eval()
        self.to(torch.bfloat16)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(4, 32, 32, 32, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
