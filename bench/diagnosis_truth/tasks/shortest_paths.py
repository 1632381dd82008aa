import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, d):
        for k in range(d.shape[1]):
            d = torch.minimum(d, d[:, :, k : k + 1] + d[:, k : k + 1, :])
        return d


def get_inputs():
    return [torch.rand(16, 64, 64) * 10]


def get_init_inputs():
    return []
