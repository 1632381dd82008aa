import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The mean of the values of each of 64 classes; 0 for a class without any."""

    def __init__(self):
        super().__init__()

    def forward(self, labels, values):
        labels = labels.remainder(64).long()
        sums = torch.zeros(64, dtype=values.dtype, device=values.device).index_add(0, labels, values)
        return sums / torch.bincount(labels, minlength=64).clamp(min=1)


def get_inputs():
    return [torch.randint(0, 64, (524288,), dtype=torch.int32), torch.rand(524288)]


def get_init_inputs():
    return []
