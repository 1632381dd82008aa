"""A float32 MLP under autocast: products in bfloat16, the result in float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(256, 512)
        self.down = nn.Linear(512, 256)

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            y = self.down(F.relu(self.up(x)))
        return x + y.float()


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return []
