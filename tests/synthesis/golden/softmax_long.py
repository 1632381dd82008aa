# Task: softmax_long
# Reference: aten._softmax.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":16},{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":4}],"block":{"columns":1,"lanes":1,"stages":1,"steps":4096,"warps":8},"by_residue":true,"chunks":4,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def exponential_of_distance(x, top):
    # exp(x - top); 0 for x = -inf also where nothing greater was seen yet
    return tl.where(x == float("-inf"), 0.0, tl.exp(x - top))


@triton.jit
def merged_exponentials(top_a, sum_a, top_b, sum_b):
    # Sums of exponentials relative to two maxima, relative to the higher of them.
    top = tl.maximum(top_a, top_b, propagate_nan=tl.PropagateNan.ALL)
    return top, sum_a * exponential_of_distance(top_a, top) + sum_b * exponential_of_distance(top_b, top)


# Region 1: 2 x 40000 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 4096}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=16, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=4, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_pass1_1(x0_ptr, max1_partials, max1_exponentials_partials, STEPS: tl.constexpr):
    program = tl.program_id(0)
    chunk = program % 4
    program = program // 4
    max1_lanes = tl.full([STEPS], float("-inf"), tl.float32)
    max1_exponentials_lanes = tl.full([STEPS], 0.0, tl.float32)
    for start in range(0, 12288, STEPS):
        step = chunk * 12288 + start + tl.arange(0, STEPS)
        in_step = step < 40000
        x0_0 = tl.load(x0_ptr + 40000 * program + step, mask=in_step, other=float("-inf"))
        max1_new = x0_0
        max1_top = tl.maximum(max1_lanes, max1_new, propagate_nan=tl.PropagateNan.ALL)
        max1_exponentials_lanes = max1_exponentials_lanes * exponential_of_distance(max1_lanes, max1_top) + exponential_of_distance(max1_new, max1_top)
        max1_lanes = max1_top
    max1, max1_exponentials = tl.reduce((max1_lanes, max1_exponentials_lanes), axis=0, combine_fn=merged_exponentials)
    tl.store(max1_partials + (program) * 4 + chunk, max1)
    tl.store(max1_exponentials_partials + (program) * 4 + chunk, max1_exponentials)


@triton.autotune(
    configs=[
        triton.Config({"STEPS": 4096}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=16, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=4, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_pass2_1(x0_ptr, out0_ptr, max1_partials, max1_exponentials_partials, STEPS: tl.constexpr):
    program = tl.program_id(0)
    chunk = program % 4
    program = program // 4
    part = tl.arange(0, 4)
    max1_parts = tl.load(max1_partials + (program) * 4 + part)
    max1_exponentials_parts = tl.load(max1_exponentials_partials + (program) * 4 + part)
    max1, max1_exponentials = tl.reduce((max1_parts, max1_exponentials_parts), axis=0, combine_fn=merged_exponentials)
    for start in range(0, 12288, STEPS):
        step = chunk * 12288 + start + tl.arange(0, STEPS)
        in_step = step < 40000
        x0_0 = tl.load(x0_ptr + 40000 * program + step, mask=in_step, other=0.0)
        sub2 = x0_0 - max1
        exp_nonpositive3 = tl.exp(sub2)
        tl.store(out0_ptr + 40000 * program + step, exp_nonpositive3 / max1_exponentials, mask=in_step)


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
        out0 = torch.empty((2, 40000), dtype=torch.float32, device=device)
        partials1_max1 = torch.empty(8, dtype=torch.float32, device=device)
        partials1_max1_exponentials = torch.empty(8, dtype=torch.float32, device=device)
        rows_pass1_1[(8,)](x0, partials1_max1, partials1_max1_exponentials)
        rows_pass2_1[(8,)](x0, out0, partials1_max1, partials1_max1_exponentials)
        return out0
