# Task: adaptive_pool
# Reference: aten._adaptive_avg_pool2d.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 12 x 3 x 4 (window) x 3 (window)
@triton.jit
def windows_1(x0_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 36
    lane1 = lane % 3
    lane0 = lane // 3
    sum1_lanes = tl.full([LANES], 0.0, tl.float32)
    for k2 in tl.static_range(4):
        for k3 in tl.static_range(3):
            x0_0 = tl.load(x0_ptr + 36 * lane0 + 3 * lane1 + 9 * k2 + k3, mask=in_lane, other=0.0)
            sum1_lanes += x0_0
    tl.store(out0_ptr + 3 * lane0 + lane1, sum1_lanes * 0.0833333333, mask=in_lane)


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
        out0 = torch.empty((2, 3, 2, 3), dtype=torch.float32, device=device)
        windows_1[lambda meta: (triton.cdiv(36, meta["LANES"]),)](x0, out0, LANES=64, num_warps=1, num_stages=1)
        return out0
