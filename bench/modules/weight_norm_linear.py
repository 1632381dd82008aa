"""A Linear layer whose rows have a learned length."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(256, 256))
        self.length = nn.Parameter(torch.ones(256, 1))

    def forward(self, x):
        return F.relu(x @ (self.direction * (self.length / self.direction.norm(dim=1, keepdim=True))).t())


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return []
