import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        i = torch.arange(3072)
        return torch.gather(x, 1, (i.unsqueeze(1) + i) % 3072).sum(dim=0)  # a diagonal goes on at the other side


def get_inputs():
    return [torch.randn(3072, 3072)]


def get_init_inputs():
    return []
