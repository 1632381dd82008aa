import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Weights of the two experts that each token goes to; zero for the others."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        best = torch.topk(x, 2, dim=1).values
        kept = torch.exp(x - best[:, :1]) * (x >= best[:, 1:])
        return kept / kept.sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(16384, 16)]


def get_init_inputs():
    return []
