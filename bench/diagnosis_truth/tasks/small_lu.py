import torch
import torch.nn as nn


class Model(nn.Module):
    """LU factors of many 16x16 matrices without exchanges; L (unit diagonal) and U in one matrix."""

    def __init__(self):
        super().__init__()

    def forward(self, a, shift):
        a = a + torch.diag(8 + shift)
        n = a.shape[1]
        for k in range(n - 1):
            l = a[:, k + 1:, k] / a[:, k, k][:, None]
            rest = a[:, k + 1:, k + 1:] - l[:, :, None] * a[:, k, k + 1:][:, None, :]
            low = torch.cat([l[:, :, None], rest], dim=2)
            a = torch.cat([a[:, :k + 1], torch.cat([a[:, k + 1:, :k], low], dim=2)], dim=1)
        return a


def get_inputs():
    return [torch.randn(1024, 16, 16) * 0.5, torch.rand(16)]


def get_init_inputs():
    return []
