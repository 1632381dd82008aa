import torch


class Model(torch.nn.Module):
    """Two layers with the same weights, and a result that no gradient reaches."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32, bias=False), torch.nn.Linear(32, 32, bias=False)
        self.second.weight = self.first.weight
        self.limit = torch.nn.Parameter(torch.zeros(32))

    def forward(self, x):
        y = self.second(torch.relu(self.first(x)))
        return y, (y.detach() > self.limit).float()


def get_inputs():
    return [torch.randn(8, 32)]


def get_init_inputs():
    return []
