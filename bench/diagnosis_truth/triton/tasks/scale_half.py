import torch
import torch.nn as nn

ROWS, COLUMNS = 8192, 4096


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x * 0.5 + 1.0


def get_inputs():
    return [torch.randn(ROWS, COLUMNS).half()]


def get_init_inputs():
    return []
