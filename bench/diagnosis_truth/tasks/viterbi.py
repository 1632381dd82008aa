import torch
import torch.nn as nn


class Model(nn.Module):
    """Best scores of each of 47 states after each step, for eight sequences."""

    def __init__(self):
        super().__init__()

    def forward(self, emission, change):
        m = emission[:, 0]
        y = [m]
        for t in range(1, emission.shape[1]):
            m = (m[:, :, None] + change[None]).amax(dim=1) + emission[:, t]
            y.append(m)
        return torch.stack(y, dim=1)


def get_inputs():
    return [torch.randn(8, 512, 47), torch.randn(47, 47)]


def get_init_inputs():
    return []
