import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The largest of each 32 neighbours."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.max_pool1d(x.unsqueeze(1), 32, stride=1).squeeze(1)


def get_inputs():
    return [torch.randn(128, 4096 + 31)]


def get_init_inputs():
    return []
