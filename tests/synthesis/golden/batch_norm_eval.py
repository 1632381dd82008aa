# Task: batch_norm_eval
# Reference: aten.native_batch_norm.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 3 x 4 x 70
@triton.jit
def elements_1(x0_ptr, p0_ptr, p1_ptr, p2_ptr, p3_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 840
    lane2 = lane % 70
    lane1 = lane // 70 % 4
    lane0 = lane // 280
    x0_0 = tl.load(x0_ptr + 280 * lane0 + 70 * lane1 + lane2, mask=in_lane, other=0.0)
    p3_1 = tl.load(p3_ptr + lane1, mask=in_lane, other=0.0)
    add3 = p3_1 + 1e-05
    p0_5 = tl.load(p0_ptr + lane1, mask=in_lane, other=0.0)
    mul6 = tl.rsqrt(add3) * p0_5
    p1_8 = tl.load(p1_ptr + lane1, mask=in_lane, other=0.0)
    p2_9 = tl.load(p2_ptr + lane1, mask=in_lane, other=0.0)
    tl.store(out0_ptr + 280 * lane0 + 70 * lane1 + lane2, (x0_0 * mul6) + (p1_8 - (p2_9 * mul6)), mask=in_lane)


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
        p2 = self.params[2]
        p3 = self.params[3]
        out0 = torch.empty((3, 4, 10, 7), dtype=torch.float32, device=device)
        elements_1[lambda meta: (triton.cdiv(840, meta["LANES"]),)](x0, p0, p1, p2, p3, out0, LANES=128, num_warps=1, num_stages=1)
        return out0
