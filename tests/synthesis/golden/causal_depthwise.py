# Task: causal_depthwise
# Reference: aten.convolution.default, aten.slice.Tensor, aten.silu.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


# Region 1: 2 x 6 x 50 x 4 (window)
@triton.jit
def windows_1(x0_ptr, p0_ptr, p1_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 600
    lane2 = lane % 50
    lane1 = lane // 50 % 6
    lane0 = lane // 300
    sum3_lanes = tl.full([LANES], 0.0, tl.float32)
    for k3 in tl.static_range(4):
        place3 = lane2 + 1 * k3 - 3
        inside3 = (place3 >= 0) & (place3 < 50)
        x0_0 = tl.load(x0_ptr + 300 * lane0 + 50 * lane1 + lane2 + k3 - 3, mask=in_lane & inside3, other=0.0)
        p0_1 = tl.load(p0_ptr + 4 * lane1 + k3, mask=in_lane, other=0.0)
        mul2 = x0_0 * p0_1
        sum3_lanes += tl.where(inside3, mul2, 0.0)
    p1_4 = tl.load(p1_ptr + lane1, mask=in_lane, other=0.0)
    add5 = sum3_lanes + p1_4
    tl.store(out0_ptr + 300 * lane0 + 50 * lane1 + lane2, add5 * sigmoid(add5), mask=in_lane)


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
        p0 = self.params[0]
        p1 = self.params[1]
        out0 = torch.empty((2, 6, 50), dtype=torch.float32, device=device)
        windows_1[lambda meta: (triton.cdiv(600, meta["LANES"]),)](x0, p0, p1, out0, LANES=64, num_warps=1, num_stages=1)
        return out0
