"""The gate of a SwiGLU block: one half of the features, passed through SiLU, scales the other half."""
import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 512
features = 2816


class Model(nn.Module):
    def forward(self, gate, value):
        return F.silu(gate) * value


def get_inputs():
    return [torch.randn(tokens, features), torch.randn(tokens, features)]


def get_init_inputs():
    return []
