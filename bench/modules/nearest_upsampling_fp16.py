"""A decoder's step: nearest-neighbour upsampling and a SiLU, in float16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.silu(F.interpolate(x, scale_factor=2, mode="nearest"))


def get_inputs():
    return [torch.randn(2, 64, 32, 32, dtype=torch.float16)]


def get_init_inputs():
    return []
