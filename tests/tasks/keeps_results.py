import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.gate = nn.Linear(64, 8)

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=-1)
        self.weights = weights
        self.calls += 1
        return torch.tanh(x) * weights.max(dim=-1, keepdim=True).values

def get_inputs():
    return [torch.randn(512, 64)]

def get_init_inputs():
    return []
