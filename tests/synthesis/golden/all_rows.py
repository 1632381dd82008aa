# Task: all_rows
# Reference: aten.gt.Scalar, aten.all.dim
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":64,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def lower(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: 30 x 60 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 64}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 64}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_1(x0_ptr, out0_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 60
    x0_0 = tl.load(x0_ptr + 60 * program + step, mask=in_step, other=0.0)
    convert3 = tl.cast(x0_0 > (-2.0), tl.int64)
    min4 = tl.reduce(tl.where(in_step, convert3, 9223372036854775807), axis=0, combine_fn=lower)
    tl.store(out0_ptr + program, min4 != 0)


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
        out0 = torch.empty((30,), dtype=torch.bool, device=device)
        rows_1[(30,)](x0, out0)
        return out0
