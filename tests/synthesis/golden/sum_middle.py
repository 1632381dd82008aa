# Task: sum_middle
# Reference: aten.sum.dim_IntList
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":32,"stages":1,"steps":32,"warps":4},{"columns":1,"lanes":32,"stages":1,"steps":32,"warps":1}],"block":{"columns":1,"lanes":32,"stages":1,"steps":32,"warps":2},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 3 x 19 (reduced) x 21
@triton.autotune(
    configs=[
        triton.Config({"LANES": 32, "STEPS": 32}, num_warps=2, num_stages=1),
        triton.Config({"LANES": 32, "STEPS": 32}, num_warps=4, num_stages=1),
        triton.Config({"LANES": 32, "STEPS": 32}, num_warps=1, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, LANES: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))[:, None]
    in_lane = lane < 63
    lane2 = lane % 21
    lane0 = lane // 21
    step = tl.arange(0, STEPS)[None, :]
    in_step = step < 19
    x0_0 = tl.load(x0_ptr + 399 * lane0 + 21 * step + lane2, mask=in_lane & in_step, other=0.0)
    sum1 = tl.sum(x0_0, axis=1)[:, None]
    tl.store(out0_ptr + 21 * lane0 + lane2, sum1, mask=in_lane)


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
        out0 = torch.empty((3, 1, 21), dtype=torch.float32, device=device)
        rows_1[lambda meta: (triton.cdiv(63, meta["LANES"]),)](x0, out0)
        return out0
