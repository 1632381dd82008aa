# A module as the built-in coder writes them for devices, for task_gate.py; launches.py puts its kernels in.
import torch

PRAGMA_PARAMS = True
loads = 0
product = finish = None  # kernels: KERNEL[(programs,)](tensors...)
between = None  # what the module does with a tensor between them


class ModelNew(torch.nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def load_params(self, tensors):
        global loads
        loads += 1
        weight, self.bias, self.shift = tensors
        self.packed = weight.clone()

    def forward(self, x, scale):
        y = torch.empty_like(x)
        out = torch.empty_like(x)
        product[(len(x),)](x, self.packed, self.bias, y, ROWS=16)
        finish[(len(x),)](between(y), self.shift, out, ROWS=16)
        return out
