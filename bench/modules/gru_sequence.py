"""A GRU over a short sequence, batch first."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(64, 64, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0]


def get_inputs():
    return [torch.randn(16, 24, 64)]


def get_init_inputs():
    return []
