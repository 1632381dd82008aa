import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The mean of eight comb filters: y[t] = x[t] + gain y[t - delay], for 1024 signals of 512 samples."""

    def __init__(self):
        super().__init__()
        self.delays = [17, 18, 20, 21, 23, 25, 28, 31]
        self.gains = [0.84, 0.82, 0.80, 0.78, 0.76, 0.74, 0.72, 0.70]

    def forward(self, x):
        rows, n = x.shape
        total = torch.zeros_like(x)
        for delay, gain in zip(self.delays, self.gains):
            turns = (n + delay - 1) // delay
            parts = F.pad(x, (0, turns * delay - n)).view(rows, turns, delay)
            y = [parts[:, 0]]
            for k in range(1, turns):
                y.append(parts[:, k] + gain * y[-1])
            total = total + torch.stack(y, dim=1).reshape(rows, turns * delay)[:, :n]
        return total * 0.125


def get_inputs():
    return [torch.randn(1024, 512)]


def get_init_inputs():
    return []
