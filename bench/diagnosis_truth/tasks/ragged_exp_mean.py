import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, u):
        n = (u * 2047).long().clamp(0, 2047) + 1
        inside = torch.arange(2048) < n.unsqueeze(1)
        return torch.sum(torch.exp(x) * inside, dim=1) / n


def get_inputs():
    return [torch.randn(1024, 2048), torch.sort(torch.rand(1024), descending=True)[0]]


def get_init_inputs():
    return []
