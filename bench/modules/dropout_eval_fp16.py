"""A residual with dropout in evaluation and LayerNorm, in float16."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(512)
        self.eval()
        self.to(torch.float16)

    def forward(self, x, y):
        return self.norm(x + self.drop(y))


def get_inputs():
    return [torch.randn(256, 512, dtype=torch.float16), torch.randn(256, 512, dtype=torch.float16)]


def get_init_inputs():
    return []
