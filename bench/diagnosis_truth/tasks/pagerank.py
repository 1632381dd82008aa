import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The ranks of the 90 pages of each of 64 webs, after 50 steps: links[web][from][to]."""

    def __init__(self):
        super().__init__()

    def forward(self, links):
        a = links.clamp(min=0.01)
        shares = a / a.sum(dim=2, keepdim=True)
        p = torch.full_like(links[:, :1], 1 / 90)
        for _ in range(50):
            p = 0.85 * (p @ shares) + 0.15 / 90
        return p.squeeze(1)


def get_inputs():
    return [torch.rand(64, 90, 90)]


def get_init_inputs():
    return []
