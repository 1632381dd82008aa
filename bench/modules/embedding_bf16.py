"""Token and position embeddings, added up, in bfloat16."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(5000, 256)
        self.places = nn.Embedding(512, 256)
        self.to(torch.bfloat16)

    def forward(self, ids):
        return self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))


def get_inputs():
    return [torch.randint(0, 5000, (8, 256))]


def get_init_inputs():
    return []
