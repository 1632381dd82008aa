# What the first call alone makes, and what is the same after each call.
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
        self.first, self.second = torch.ones(128), torch.zeros(128)

    def forward(self, x):
        if self.mask is None or self.mask.shape[0] != x.shape[-1]:
            self.mask = torch.tril(torch.ones(x.shape[-1], x.shape[-1]))
        self.second = self.first.to(x.device)
        self.shape = x.shape
        self.sizes = {"last": [x.shape[-1], (1, 2)]}
        return x @ self.mask * self.second

def get_inputs():
    return [torch.randn(32, 128)]

def get_init_inputs():
    return []
