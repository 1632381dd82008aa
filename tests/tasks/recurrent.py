"""What the tracer writes out with other functions (reference/python/traceable.py): recurrent layers, repeats, one-hot vectors."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(12, 7)
        self.rnn = nn.RNN(7, 4, bias=False)
        self.relu = nn.RNN(7, 4, nonlinearity="relu", bidirectional=True)

    def forward(self, x, labels):
        y, state = self.gru(x)
        z, (h, c) = self.lstm(y)
        repeated = torch.repeat_interleave(x, 2, dim=-1) + x.repeat_interleave(2).reshape(3, 4, 10)
        return z, h, c, state, self.rnn(z)[0], self.relu(z)[1], repeated, F.one_hot(labels, 9)


def get_inputs():
    return [torch.randn(3, 4, 5), torch.randint(0, 9, (6,))]


def get_init_inputs():
    return []
