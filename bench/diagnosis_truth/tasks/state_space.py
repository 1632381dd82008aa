import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, w):
        h = torch.zeros(x.shape[0], x.shape[2])
        states = []
        for t in range(x.shape[1]):
            h = h @ w + x[:, t]
            states.append(h)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(64, 512, 8), torch.randn(8, 8) * 0.2]


def get_init_inputs():
    return []
