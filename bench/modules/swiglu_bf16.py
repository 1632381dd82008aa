"""Llama's MLP: a gated unit between three Linear layers, in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(256, 688, bias=False)
        self.up = nn.Linear(256, 688, bias=False)
        self.down = nn.Linear(688, 256, bias=False)
        self.to(torch.bfloat16)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(128, 256, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
