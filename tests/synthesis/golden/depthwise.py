# Task: depthwise
# Reference: aten.convolution.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 2 x 5 x 9 x 6 x 3 (window) x 5 (window)
@triton.jit
def windows_1(x0_ptr, p0_ptr, p1_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 540
    lane3 = lane % 6
    lane2 = lane // 6 % 9
    lane1 = lane // 54 % 5
    lane0 = lane // 270
    sum3_lanes = tl.full([LANES], 0.0, tl.float32)
    for k4 in tl.static_range(3):
        place4 = 2 * lane2 + 1 * k4 - 1
        inside4 = (place4 >= 0) & (place4 < 17)
        for k5 in tl.static_range(5):
            place5 = 2 * lane3 + 1 * k5 - 2
            inside5 = (place5 >= 0) & (place5 < 12)
            x0_0 = tl.load(x0_ptr + 1020 * lane0 + 204 * lane1 + 24 * lane2 + 2 * lane3 + 12 * k4 + k5 - 14, mask=in_lane & inside4 & inside5, other=0.0)
            p0_1 = tl.load(p0_ptr + 15 * lane1 + 5 * k4 + k5, mask=in_lane, other=0.0)
            mul2 = x0_0 * p0_1
            sum3_lanes += tl.where(inside4 & inside5, mul2, 0.0)
    p1_4 = tl.load(p1_ptr + lane1, mask=in_lane, other=0.0)
    tl.store(out0_ptr + 270 * lane0 + 54 * lane1 + 6 * lane2 + lane3, sum3_lanes + p1_4, mask=in_lane)


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
        out0 = torch.empty((2, 5, 9, 6), dtype=torch.float32, device=device)
        windows_1[lambda meta: (triton.cdiv(540, meta["LANES"]),)](x0, p0, p1, out0, LANES=64, num_warps=1, num_stages=1)
        return out0
