# Task: convolution_pool_norm_threads
# Reference: aten.convolution.default, aten.max_pool2d_with_indices.default, aten.native_group_norm.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":128,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: convolution
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 16}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 32}, num_warps=4, num_stages=2),
    ],
    key=[],
)
@triton.jit
def convolution_0(x0_ptr, p0_ptr, p1_ptr, scratch0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # convolution, m x n x k = 8 x 120 x 27, 2 of them
    program = tl.program_id(0)
    tiles_m = (8 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (120 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    pixel0 = n // 12
    image0 = pixel0
    pixel1 = n % 12
    image1 = pixel1
    place = image0 * 14 + image1
    image_at = x0_ptr + 504 * b0
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = tl.arange(0, BLOCK_K)
    weights_at = p0_ptr
    for step in range(0, (27 + BLOCK_K - 1) // BLOCK_K):
        of_k = step * BLOCK_K + k
        channel = of_k // 9
        tap = of_k % 9
        tap1 = tap % 3
        tap0 = tap // 3
        columns = tl.load(image_at + (channel * 168 + tap0 * 14 + tap1)[:, None] + place[None, :], mask=(of_k[:, None] < 27) & (n[None, :] < 120), other=0.0)
        rows = tl.load(weights_at + m[:, None] * 27 + of_k[None, :], mask=(m[:, None] < 8) & (of_k[None, :] < 27), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p1_3 = tl.load(p1_ptr + m[:, None], mask=m[:, None] < 8, other=0.0)
    tl.store(scratch0_ptr + 960 * b0 + 120 * m[:, None] + n[None, :], acc + p1_3, mask=(m[:, None] < 8) & (n[None, :] < 120))


# Region 2: 80 x 6 x 2 (window) x 2 (window)
@triton.jit
def windows_2(scratch0_ptr, scratch2_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 480
    lane1 = lane % 6
    lane0 = lane // 6
    max1_lanes = tl.full([LANES], float("-inf"), tl.float32)
    for k2 in tl.static_range(2):
        for k3 in tl.static_range(2):
            scratch0_0 = tl.load(scratch0_ptr + 24 * lane0 + 2 * lane1 + 12 * k2 + k3, mask=in_lane, other=0.0)
            max1_lanes = tl.maximum(max1_lanes, scratch0_0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(scratch2_ptr + 6 * lane0 + lane1, max1_lanes, mask=in_lane)


# Region 3: 4 x 120 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 128}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 128}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_3(scratch1_ptr, scratch2_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 120
    scratch2_0 = tl.load(scratch2_ptr + 120 * program + step, mask=in_step, other=0.0)
    sum1 = tl.sum(scratch2_0, axis=0)
    tl.store(scratch1_ptr + program, sum1)


# Region 4: 2 x 2 x 4 (reduced) x 30 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 128}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 128}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_4(p2_ptr, p3_ptr, out0_ptr, scratch1_ptr, scratch2_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    program1 = program % 2
    program0 = program // 2
    step = tl.arange(0, STEPS)
    in_step = step < 120
    step3 = step % 30
    step2 = step // 30
    scratch2_0 = tl.load(scratch2_ptr + 240 * program0 + 120 * program1 + 30 * step2 + step3, mask=in_step, other=0.0)
    scratch1_1 = tl.load(scratch1_ptr + 2 * program0 + program1)
    sub4 = scratch2_0 - (scratch1_1 / 120.0)
    mul5 = sub4 * sub4
    sum6 = tl.sum(tl.where(in_step, mul5, 0.0), axis=0)
    add9 = (sum6 / 120.0) + 1e-05
    p2_11 = tl.load(p2_ptr + 4 * program1 + step2, mask=in_step, other=0.0)
    p3_14 = tl.load(p3_ptr + 4 * program1 + step2, mask=in_step, other=0.0)
    tl.store(out0_ptr + 240 * program0 + 120 * program1 + 30 * step2 + step3, (sub4 * (tl.rsqrt(add9) * p2_11)) + p3_14, mask=in_step)


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
        out0 = torch.empty((2, 8, 5, 6), dtype=torch.float32, device=device)
        scratch0 = torch.empty(1920, dtype=torch.float32, device=device)
        scratch1 = torch.empty(4, dtype=torch.float32, device=device)
        scratch2 = torch.empty(480, dtype=torch.float32, device=device)
        convolution_0[lambda meta: (2 * triton.cdiv(8, meta["BLOCK_M"]) * triton.cdiv(120, meta["BLOCK_N"]),)](x0, p0, p1, scratch0)
        windows_2[lambda meta: (triton.cdiv(480, meta["LANES"]),)](scratch0, scratch2, LANES=64, num_warps=1, num_stages=1)
        rows_3[(4,)](scratch1, scratch2)
        rows_4[(4,)](p2, p3, out0, scratch1, scratch2)
        return out0
