"""Inputs whose promises must be kept: a distribution, labels, a triangular and a symmetric matrix, and a plain one."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, p, labels, triangular, symmetric, plain):
        return p.sum() + labels.sum() + (triangular @ symmetric).sum() + plain


def get_inputs():
    square = torch.randn(16, 16)
    return [torch.softmax(torch.randn(8, 16), -1), torch.randint(0, 5, (8,)), torch.tril(torch.randn(16, 16)),
            square + square.t(), torch.randn(16, 16)]


def get_init_inputs():
    return []
