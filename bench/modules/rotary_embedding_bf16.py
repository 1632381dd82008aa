"""Rotary position embedding of queries, halves rotated, in bfloat16."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, cos, sin):
        low, high = q.chunk(2, dim=-1)
        return q * cos + torch.cat((-high, low), dim=-1) * sin


def get_inputs():
    return [torch.randn(2, 8, 256, 64, dtype=torch.bfloat16), torch.randn(256, 64, dtype=torch.bfloat16), torch.randn(256, 64, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
