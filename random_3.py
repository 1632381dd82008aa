import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.m1 = nn.Conv1d(3, 7, (5, ), stride=(1, ), padding=(0, ), dilation=(2, ), groups=1, bias=False)
        self.m2 = nn.LayerNorm(10)
        self.m3 = nn.LayerNorm(10)
        self.m4 = nn.GroupNorm(1, 7)

    def forward(self, x0):
        v = self.m1(x0)
        v = self.m2(v)
        v = self.m3(v)
        v = self.m4(v)
        v = F.max_pool1d(v, 2)
        v = torch.log_softmax(v, dim=0)
        return v


def get_inputs():
    return [torch.randn(3, 3, 18, )]


def get_init_inputs():
    return []
