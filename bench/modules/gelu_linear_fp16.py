"""The first half of an MLP: Linear and GELU, in float16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 1024)
        self.to(torch.float16)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(128, 256, dtype=torch.float16)]


def get_init_inputs():
    return []
