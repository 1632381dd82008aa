"""AlexNet's local response normalisation after ReLU."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LocalResponseNorm(5)

    def forward(self, x):
        return self.norm(F.relu(x))


def get_inputs():
    return [torch.randn(4, 64, 28, 28)]


def get_init_inputs():
    return []
