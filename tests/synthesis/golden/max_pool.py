# Task: max_pool
# Reference: aten.max_pool2d_with_indices.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 6 x 9 x 10 x 3 (window) x 3 (window)
@triton.jit
def windows_1(x0_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 540
    lane2 = lane % 10
    lane1 = lane // 10 % 9
    lane0 = lane // 90
    max1_lanes = tl.full([LANES], float("-inf"), tl.float32)
    for k3 in tl.static_range(3):
        place3 = 2 * lane1 + 1 * k3 - 1
        inside3 = (place3 >= 0) & (place3 < 17)
        for k4 in tl.static_range(3):
            place4 = 2 * lane2 + 1 * k4 - 1
            inside4 = (place4 >= 0) & (place4 < 20)
            x0_0 = tl.load(x0_ptr + 340 * lane0 + 40 * lane1 + 2 * lane2 + 20 * k3 + k4 - 21, mask=in_lane & inside3 & inside4, other=float("-inf"))
            max1_lanes = tl.maximum(max1_lanes, x0_0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out0_ptr + 90 * lane0 + 10 * lane1 + lane2, max1_lanes, mask=in_lane)


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
        out0 = torch.empty((2, 3, 9, 10), dtype=torch.float32, device=device)
        windows_1[lambda meta: (triton.cdiv(540, meta["LANES"]),)](x0, out0, LANES=64, num_warps=1, num_stages=1)
        return out0
