"""Layers whose weights are made of a direction and lengths at each call: of rows, of columns and of the whole."""
import torch
import torch.nn as nn
from torch.nn.utils import weight_norm


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = weight_norm(nn.Linear(12, 8))
        self.columns = weight_norm(nn.Conv1d(4, 6, 3), dim=1)
        self.whole = weight_norm(nn.Linear(6, 5), dim=None)

    def forward(self, x):
        return self.whole(torch.relu(self.columns(self.rows(x))))


def get_inputs():
    return [torch.randn(3, 4, 12)]


def get_init_inputs():
    return []
