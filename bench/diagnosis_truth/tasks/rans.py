import torch
import torch.nn as nn


class Model(nn.Module):
    """Streams decoded as an asymmetric numeral system does: y[symbol][stream], words[stream][place]."""

    def __init__(self):
        super().__init__()

    def forward(self, words, table, value, start):
        words, table, x = words.long(), table.long(), start.long()
        place = torch.zeros_like(x)
        y = []
        for t in range(words.shape[1]):
            slot = x & 65535
            y.append(value[slot])
            x = table[slot, 0] * (x >> 16) + table[slot, 1]
            low = x < 65536
            word = words.gather(1, place[:, None])[:, 0]
            x = torch.where(low, (x << 16) | word, x)
            place = place + low.long()
        return torch.stack(y)


def get_inputs():
    words = torch.randint(0, 65536, (64, 1024), dtype=torch.int32)
    table = torch.randint(1, 65536, (65536, 2), dtype=torch.int32)
    start = torch.randint(65536, 2147483647, (64,), dtype=torch.int32)
    return [words, table, torch.randn(65536), start]


def get_init_inputs():
    return []
