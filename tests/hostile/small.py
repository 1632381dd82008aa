import torch
import torch.nn as nn


class Model(nn.Module):
    """Softsign of a few rows: a call takes as long as the noise of a clock."""

    def forward(self, x):
        return nn.functional.softsign(x)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return []
