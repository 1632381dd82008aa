# Task: integers
# Reference: aten.floor_divide.default, aten.mul.Tensor, aten.remainder.Scalar, aten.sub.Tensor
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def floor_divide(a, b):
    q = a // b  # towards zero
    return tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)


@triton.jit
def remainder(a, b):
    r = a % b  # has the sign of a
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


# Region 1: 300
@triton.jit
def elements_1(x0_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 300
    x0_0 = tl.load(x0_ptr + lane, mask=in_lane, other=0)
    tl.store(out0_ptr + lane, (floor_divide(x0_0, 3) * 2) - remainder(x0_0, 5), mask=in_lane)


class ModelNew(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.params = []

    def load_params(self, params):
        self.params = list(params)

    @classmethod
    def from_state(cls, params):
        model = cls()
        model.load_params([p.detach().contiguous() for p in params])
        return model

    def forward(self, *inputs):
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        device = tensors[0].device
        x0 = tensors[0]
        out0 = torch.empty((300,), dtype=torch.int64, device=device)
        elements_1[lambda meta: (triton.cdiv(300, meta["LANES"]),)](x0, out0, LANES=128, num_warps=1, num_stages=1)
        return out0
