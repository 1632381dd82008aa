import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        for _ in range(8):
            p = F.pad(x.unsqueeze(1), (1, 1), mode="replicate").squeeze(1)
            x = (p[:, :-2] + x + p[:, 2:]) / 3
        return x


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
