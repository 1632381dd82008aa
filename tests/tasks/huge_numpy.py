"""10 TB that only show when they are asked for."""
import numpy as np
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.from_numpy(np.ones((1250000, 1000000)))]


def get_init_inputs():
    return []
