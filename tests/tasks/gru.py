"""A GRU alone, whose products are counted by hand in reference_test.cpp."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, num_layers=2)

    def forward(self, x, state):
        return self.gru(x, state)[0]


def get_inputs():
    return [torch.randn(5, 3, 8), torch.randn(2, 3, 16)]


def get_init_inputs():
    return []
