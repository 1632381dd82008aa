"""One recurrent layer whose dropout has no layer behind it: Torch warns of it and draws nothing."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.GRU(5, 6, num_layers=1, dropout=0.5)

    def forward(self, x):
        return self.layers(x)[0]


def get_inputs():
    return [torch.randn(70, 3, 5)]


def get_init_inputs():
    return []
