# Task: large
# Reference: aten.relu.default, aten.mul.Tensor
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":2048,"stages":1,"steps":1,"warps":8},{"columns":1,"lanes":4096,"stages":1,"steps":1,"warps":8}],"block":{"columns":1,"lanes":1024,"stages":1,"steps":1,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: 2048 x 4096
@triton.autotune(
    configs=[
        triton.Config({"LANES": 1024}, num_warps=4, num_stages=1),
        triton.Config({"LANES": 2048}, num_warps=8, num_stages=1),
        triton.Config({"LANES": 4096}, num_warps=8, num_stages=1),
    ],
    key=[],
)
@triton.jit
def elements_1(x0_ptr, x1_ptr, out0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    tiles: tl.constexpr = (4096 + LANES - 1) // LANES
    lane = (program % tiles * LANES + tl.arange(0, LANES))
    outer = program // tiles
    x0_1 = tl.load(x0_ptr + 4096 * outer + lane)
    x1_3 = tl.load(x1_ptr + lane)
    tl.store(out0_ptr + 4096 * outer + lane, tl.where(x0_1 < 0.0, 0.0, x0_1) * x1_3)


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
        out0 = torch.empty((2048, 4096), dtype=torch.float32, device=device)
        elements_1[lambda meta: (2048 * triton.cdiv(4096, meta["LANES"]),)](x0, x1, out0)
        return out0
