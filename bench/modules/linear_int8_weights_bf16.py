"""A Linear layer whose weights are int8 with a scale for each row; activations are bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(512, 512)
        scale = weight.abs().amax(dim=1, keepdim=True) / 127
        self.register_buffer("weight", torch.round(weight / scale).to(torch.int8))
        self.register_buffer("scale", scale.squeeze(1).to(torch.bfloat16))

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype)) * self.scale


def get_inputs():
    return [torch.randn(64, 512, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
