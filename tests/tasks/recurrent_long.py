"""Recurrent layers of more steps than are written out: each is one node of the graph. Also pieces that overlap and pieces that do not, and a pooling that Torch
ends with as_strided_."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(12, 7, bias=False)
        self.rnn = nn.RNN(7, 4)

    def forward(self, x, h0):
        y, state = self.gru(x, h0)
        z, (h, c) = self.lstm(y)
        pooled = nn.functional.adaptive_avg_pool1d(x.transpose(1, 2), 1)
        return self.rnn(z)[0], state, h, c, x.unfold(1, 7, 7), x.unfold(1, 3, 2) * 2, x.unfold(-1, 2, 3), pooled + 1


def get_inputs():
    return [torch.randn(70, 71, 5), torch.randn(4, 70, 6)]


def get_init_inputs():
    return []
