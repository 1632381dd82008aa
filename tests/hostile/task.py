import torch
import torch.nn as nn


class Model(nn.Module):
    """Softsign with a learnt scale: what the hostile candidates of this folder pretend to compute."""

    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features) + 0.5)

    def forward(self, x):
        return nn.functional.softsign(x) * self.scale


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return [512]
