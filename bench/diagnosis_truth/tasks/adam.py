import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Parameters after the third step of AdamW."""

    def __init__(self):
        super().__init__()

    def forward(self, p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 0.001 * (m / 0.271) / (torch.sqrt(v / 0.002997001) + 1e-3) - 0.00001 * p


def get_inputs():
    return [torch.randn(1 << 20), torch.randn(1 << 20), torch.randn(1 << 20), torch.rand(1 << 20)]


def get_init_inputs():
    return []
