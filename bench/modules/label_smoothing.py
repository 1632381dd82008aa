"""Cross entropy with labels smoothed, written with one-hot vectors."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, logits, labels):
        target = F.one_hot(labels, logits.shape[-1]).to(logits.dtype) * 0.9 + 0.1 / logits.shape[-1]
        return -(target * F.log_softmax(logits, dim=-1)).sum(dim=-1).mean()


def get_inputs():
    return [torch.randn(256, 1000), torch.randint(0, 1000, (256,))]


def get_init_inputs():
    return []
