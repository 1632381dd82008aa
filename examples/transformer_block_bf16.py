"""A transformer block: attention over one packed projection, then an MLP, in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F

width, heads = 256, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.second = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.to(torch.bfloat16)

    def forward(self, x):
        batch, tokens, _ = x.shape
        qkv = self.qkv(self.first(x)).reshape(batch, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = torch.softmax((q @ k.transpose(-2, -1)) * (width // heads) ** -0.5, dim=-1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


def get_inputs():
    return [torch.randn(2, 128, width, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
