"""Writes through views of views, of which some are read before and some after."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        y = x * 2
        turned = y.t()
        before = turned.sum(1)
        turned[1:3, ::2].mul_(3)
        y.view(4, 2, 6)[:, 1].add_(1)
        y[0] += x[1]
        out = torch.zeros_like(x)
        out[:, :2] = y[:, 1:3]
        out.permute(1, 0)[-1] = 7
        return turned + 1, before, out, y.unsqueeze(0)


def get_inputs():
    return [torch.randn(4, 12)]


def get_init_inputs():
    return []
