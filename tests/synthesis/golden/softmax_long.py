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
def rows_pass1_1(x0_ptr, peak1_partials, peak1_exponentials_partials, STEPS: tl.constexpr):
    program = tl.program_id(0)
    chunk = program % 4
    program = program // 4
    peak1_lanes = tl.full([STEPS], float("-inf"), tl.float32)
    peak1_exponentials_lanes = tl.full([STEPS], 0.0, tl.float32)
    for start in range(0, 12288, STEPS):
        step = chunk * 12288 + start + tl.arange(0, STEPS)
        in_step = step < 40000
        x0_0 = tl.load(x0_ptr + 40000 * program + step, mask=in_step, other=float("-inf"))
        peak1_new = x0_0
        peak1_top = tl.maximum(peak1_lanes, peak1_new, propagate_nan=tl.PropagateNan.ALL)
        peak1_exponentials_lanes = peak1_exponentials_lanes * exponential_of_distance(peak1_lanes, peak1_top) + exponential_of_distance(peak1_new, peak1_top)
        peak1_lanes = peak1_top
    peak1, peak1_exponentials = tl.reduce((peak1_lanes, peak1_exponentials_lanes), axis=0, combine_fn=merged_exponentials)
    tl.store(peak1_partials + (program) * 4 + chunk, peak1)
    tl.store(peak1_exponentials_partials + (program) * 4 + chunk, peak1_exponentials)


@triton.autotune(
    configs=[
        triton.Config({"STEPS": 4096}, num_warps=8, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=16, num_stages=1),
        triton.Config({"STEPS": 4096}, num_warps=4, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_pass2_1(x0_ptr, out0_ptr, peak1_partials, peak1_exponentials_partials, STEPS: tl.constexpr):
    program = tl.program_id(0)
    chunk = program % 4
    program = program // 4
    part = tl.arange(0, 4)
    peak1_parts = tl.load(peak1_partials + (program) * 4 + part)
    peak1_exponentials_parts = tl.load(peak1_exponentials_partials + (program) * 4 + part)
    peak1, peak1_exponentials = tl.reduce((peak1_parts, peak1_exponentials_parts), axis=0, combine_fn=merged_exponentials)
    for start in range(0, 12288, STEPS):
        step = chunk * 12288 + start + tl.arange(0, STEPS)
        in_step = step < 40000
        x0_0 = tl.load(x0_ptr + 40000 * program + step, mask=in_step, other=0.0)
        sub2 = x0_0 - peak1
        exp_nonpositive3 = tl.exp(sub2)
        tl.store(out0_ptr + 40000 * program + step, exp_nonpositive3 / peak1_exponentials, mask=in_step)


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
        partials1_peak1 = torch.empty(8, dtype=torch.float32, device=device)
        partials1_peak1_exponentials = torch.empty(8, dtype=torch.float32, device=device)
        rows_pass1_1[(8,)](x0, partials1_peak1, partials1_peak1_exponentials)
        rows_pass2_1[(8,)](x0, out0, partials1_peak1, partials1_peak1_exponentials)
        return out0
