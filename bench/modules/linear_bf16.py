"""A Linear layer with bias, in bfloat16."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(768, 768)
        self.to(torch.bfloat16)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(256, 768, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
