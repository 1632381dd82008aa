import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The autocorrelation of a series at every lag: y[l] = sum of x[i] x[i + l], over n."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        n = x.shape[0]
        f = torch.fft.rfft(x.double(), 2 * n)
        return (torch.fft.irfft(f * f.conj(), 2 * n)[:n] / n).float()


def get_inputs():
    return [torch.randn(8192)]


def get_init_inputs():
    return []
