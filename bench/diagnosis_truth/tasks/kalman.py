import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """256 filters of a level each, over 2048 times: z[time][filter]."""

    def __init__(self):
        super().__init__()

    def forward(self, z, q, r):
        q, r = q.clamp(0.001, 10), r.clamp(0.01, 10)
        m = torch.zeros_like(q)
        p = torch.ones_like(q)
        y = []
        for t in range(z.shape[0]):
            p = p + q
            k = p / (p + r)
            m = m + k * (z[t] - m)
            p = (1 - k) * p
            y.append(m)
        return torch.stack(y, dim=0)


def get_inputs():
    return [torch.randn(2048, 256), torch.rand(256) * 0.1 + 0.01, torch.rand(256) + 0.5]


def get_init_inputs():
    return []
