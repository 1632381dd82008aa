# Task: broadcast
# Reference: aten.mul.Tensor, aten.add.Tensor
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 5 x 4 x 9
@triton.jit
def elements_1(x0_ptr, x1_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 180
    lane2 = lane % 9
    lane1 = lane // 9 % 4
    lane0 = lane // 36
    x0_0 = tl.load(x0_ptr + 9 * lane0 + lane2, mask=in_lane, other=0.0)
    x1_1 = tl.load(x1_ptr + lane1, mask=in_lane, other=0.0)
    tl.store(out0_ptr + 36 * lane0 + 9 * lane1 + lane2, (x0_0 * x1_1) + x1_1, mask=in_lane)


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
        x1 = tensors[1]
        out0 = torch.empty((5, 4, 9), dtype=torch.float32, device=device)
        elements_1[lambda meta: (triton.cdiv(180, meta["LANES"]),)](x0, x1, out0, LANES=128, num_warps=1, num_stages=1)
        return out0
