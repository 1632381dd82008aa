import torch
import torch.nn as nn

ROWS, COLUMNS, STEPS = 1024, 4096, 256


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = torch.zeros_like(x)
        for _ in range(STEPS):
            y = y + 0.02 * (x - y)
        return y


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
