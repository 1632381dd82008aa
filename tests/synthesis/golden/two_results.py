# Task: two_results
# Reference: aten.add.Tensor, aten.sigmoid.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


# Region 1: 126
@triton.jit
def elements_1(x0_ptr, out0_ptr, out1_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 126
    x0_0 = tl.load(x0_ptr + lane, mask=in_lane, other=0.0)
    tl.store(out0_ptr + lane, x0_0 + 1.0, mask=in_lane)
    tl.store(out1_ptr + lane, sigmoid(x0_0), mask=in_lane)


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
        out0 = torch.empty((9, 14), dtype=torch.float32, device=device)
        out1 = torch.empty((9, 14), dtype=torch.float32, device=device)
        elements_1[lambda meta: (triton.cdiv(126, meta["LANES"]),)](x0, out0, out1, LANES=128, num_warps=1, num_stages=1)
        return out0, out1
