# Task: pool_of_pool
# Reference: aten.unsqueeze.default, aten.avg_pool2d.default, aten.squeeze.dim, aten.unsqueeze.default,
#    aten.max_pool2d_with_indices.default, aten.squeeze.dim
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 36 x 2 (window)
@triton.jit
def windows_1(x0_ptr, scratch0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 36
    sum1_lanes = tl.full([LANES], 0.0, tl.float32)
    for k1 in tl.static_range(2):
        x0_0 = tl.load(x0_ptr + 2 * lane + k1, mask=in_lane, other=0.0)
        sum1_lanes += x0_0
    tl.store(scratch0_ptr + lane, sum1_lanes, mask=in_lane)


# Region 2: 12 x 2 (window)
@triton.jit
def windows_2(out0_ptr, scratch0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 12
    max3_lanes = tl.full([LANES], float("-inf"), tl.float32)
    for k1 in tl.static_range(2):
        scratch0_0 = tl.load(scratch0_ptr + 3 * lane + k1, mask=in_lane, other=0.0)
        mul2 = scratch0_0 * 0.5
        max3_lanes = tl.maximum(max3_lanes, mul2, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out0_ptr + lane, max3_lanes, mask=in_lane)


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
        out0 = torch.empty((2, 6, 1), dtype=torch.float32, device=device)
        scratch0 = torch.empty(36, dtype=torch.float32, device=device)
        windows_1[lambda meta: (triton.cdiv(36, meta["LANES"]),)](x0, scratch0, LANES=64, num_warps=1, num_stages=1)
        windows_2[lambda meta: (triton.cdiv(12, meta["LANES"]),)](out0, scratch0, LANES=64, num_warps=1, num_stages=1)
        return out0
