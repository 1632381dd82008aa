# Task: lstm
# Reference: aten.zeros.default, aten.zeros.default, aten.lstm.input
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":128,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


# Region 1: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 16}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 32}, num_warps=4, num_stages=2),
    ],
    key=[],
)
@triton.jit
def matmul_0(x0_ptr, p0_ptr, p2_ptr, scratch1_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 10 x 96 x 20
    program = tl.program_id(0)
    tiles_m = (10 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (96 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    rows_at = x0_ptr + m[:, None] * 20 + k[None, :]
    columns_at = p0_ptr + n[:, None] * 20 + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 20 // BLOCK_K * BLOCK_K, BLOCK_K):
        rows = tl.load(rows_at + k0, mask=(m[:, None] < 10), other=0.0)
        columns = tl.trans(tl.load(columns_at + k0))
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    rest = 20 // BLOCK_K * BLOCK_K
    rows = tl.load(rows_at + rest, mask=(m[:, None] < 10) & (k[None, :] < 20 - rest), other=0.0)
    columns = tl.trans(tl.load(columns_at + rest, mask=(k[None, :] < 20 - rest), other=0.0))
    acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p2_3 = tl.load(p2_ptr + n[None, :])
    tl.store(scratch1_ptr + 96 * m[:, None] + n[None, :], acc + p2_3, mask=m[:, None] < 10)


# Region 2: 120
@triton.jit
def elements_2(scratch3_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 120
    tl.store(scratch3_ptr + lane, 0.0, mask=in_lane)


# Region 3: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 16}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 32}, num_warps=4, num_stages=2),
    ],
    key=[],
)
@triton.jit
def matmul_2(memory0_ptr, memory1_ptr, memory2_ptr, memory3_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 5 x 96 x 24
    program = tl.program_id(0)
    tiles_m = (5 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (96 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    rows_at = memory1_ptr + m[:, None] * 24 + k[None, :]
    columns_at = memory2_ptr + n[:, None] * 24 + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 24 // BLOCK_K * BLOCK_K, BLOCK_K):
        rows = tl.load(rows_at + k0, mask=(m[:, None] < 5), other=0.0)
        columns = tl.trans(tl.load(columns_at + k0))
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    rest = 24 // BLOCK_K * BLOCK_K
    rows = tl.load(rows_at + rest, mask=(m[:, None] < 5) & (k[None, :] < 24 - rest), other=0.0)
    columns = tl.trans(tl.load(columns_at + rest, mask=(k[None, :] < 24 - rest), other=0.0))
    acc = tl.dot(rows, columns, acc, input_precision="ieee")
    memory0_3 = tl.load(memory0_ptr + n[None, :])
    tl.store(memory3_ptr + 96 * m[:, None] + n[None, :], acc + memory0_3, mask=m[:, None] < 5)


# Region 4: 5 x 24
@triton.jit
def elements_4(memory0_ptr, memory1_ptr, memory2_ptr, memory3_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 120
    lane1 = lane % 24
    lane0 = lane // 24
    memory0_0 = tl.load(memory0_ptr + 192 * lane0 + lane1 + 72, mask=in_lane, other=0.0)
    memory1_1 = tl.load(memory1_ptr + 96 * lane0 + lane1 + 72, mask=in_lane, other=0.0)
    add2 = memory0_0 + memory1_1
    memory0_4 = tl.load(memory0_ptr + 192 * lane0 + lane1 + 24, mask=in_lane, other=0.0)
    memory1_5 = tl.load(memory1_ptr + 96 * lane0 + lane1 + 24, mask=in_lane, other=0.0)
    add6 = memory0_4 + memory1_5
    memory2_8 = tl.load(memory2_ptr + 24 * lane0 + lane1, mask=in_lane, other=0.0)
    memory0_10 = tl.load(memory0_ptr + 192 * lane0 + lane1, mask=in_lane, other=0.0)
    memory1_11 = tl.load(memory1_ptr + 96 * lane0 + lane1, mask=in_lane, other=0.0)
    add12 = memory0_10 + memory1_11
    memory0_14 = tl.load(memory0_ptr + 192 * lane0 + lane1 + 48, mask=in_lane, other=0.0)
    memory1_15 = tl.load(memory1_ptr + 96 * lane0 + lane1 + 48, mask=in_lane, other=0.0)
    add16 = memory0_14 + memory1_15
    add19 = (sigmoid(add6) * memory2_8) + (sigmoid(add12) * libdevice.tanh(add16))
    tl.store(memory3_ptr + 24 * lane0 + lane1, sigmoid(add2) * libdevice.tanh(add19), mask=in_lane)


# Region 7: 5 x 24
@triton.jit
def elements_7(scratch0_ptr, scratch1_ptr, scratch2_ptr, scratch3_ptr, scratch4_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 120
    lane1 = lane % 24
    lane0 = lane // 24
    scratch1_0 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 168, mask=in_lane, other=0.0)
    scratch4_1 = tl.load(scratch4_ptr + 96 * lane0 + lane1 + 72, mask=in_lane, other=0.0)
    add2 = scratch1_0 + scratch4_1
    scratch1_4 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 120, mask=in_lane, other=0.0)
    scratch4_5 = tl.load(scratch4_ptr + 96 * lane0 + lane1 + 24, mask=in_lane, other=0.0)
    add6 = scratch1_4 + scratch4_5
    scratch1_8 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 24, mask=in_lane, other=0.0)
    scratch2_9 = tl.load(scratch2_ptr + 96 * lane0 + lane1 + 24, mask=in_lane, other=0.0)
    add10 = scratch1_8 + scratch2_9
    scratch3_12 = tl.load(scratch3_ptr + 24 * lane0 + lane1, mask=in_lane, other=0.0)
    scratch1_14 = tl.load(scratch1_ptr + 192 * lane0 + lane1, mask=in_lane, other=0.0)
    scratch2_15 = tl.load(scratch2_ptr + 96 * lane0 + lane1, mask=in_lane, other=0.0)
    add16 = scratch1_14 + scratch2_15
    scratch1_18 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 48, mask=in_lane, other=0.0)
    scratch2_19 = tl.load(scratch2_ptr + 96 * lane0 + lane1 + 48, mask=in_lane, other=0.0)
    add20 = scratch1_18 + scratch2_19
    add23 = (sigmoid(add10) * scratch3_12) + (sigmoid(add16) * libdevice.tanh(add20))
    scratch1_25 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 96, mask=in_lane, other=0.0)
    scratch4_26 = tl.load(scratch4_ptr + 96 * lane0 + lane1, mask=in_lane, other=0.0)
    add27 = scratch1_25 + scratch4_26
    scratch1_29 = tl.load(scratch1_ptr + 192 * lane0 + lane1 + 144, mask=in_lane, other=0.0)
    scratch4_30 = tl.load(scratch4_ptr + 96 * lane0 + lane1 + 48, mask=in_lane, other=0.0)
    add31 = scratch1_29 + scratch4_30
    add34 = (sigmoid(add6) * add23) + (sigmoid(add27) * libdevice.tanh(add31))
    tl.store(scratch0_ptr + 24 * lane0 + lane1 + 120, sigmoid(add2) * libdevice.tanh(add34), mask=in_lane)


# Region 8: 5 x 2 x 24
@triton.jit
def elements_8(out0_ptr, scratch0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 240
    lane2 = lane % 24
    lane1 = lane // 24 % 2
    lane0 = lane // 48
    scratch0_0 = tl.load(scratch0_ptr + 24 * lane0 + 120 * lane1 + lane2, mask=in_lane, other=0.0)
    tl.store(out0_ptr + 48 * lane0 + 24 * lane1 + lane2, scratch0_0, mask=in_lane)


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
        out0 = torch.empty((5, 2, 24), dtype=torch.float32, device=device)
        scratch0 = torch.empty(240, dtype=torch.float32, device=device)
        scratch1 = torch.empty(960, dtype=torch.float32, device=device)
        scratch2 = torch.empty(480, dtype=torch.float32, device=device)
        scratch3 = torch.empty(120, dtype=torch.float32, device=device)
        scratch4 = torch.empty(480, dtype=torch.float32, device=device)
        scratch5 = torch.empty(120, dtype=torch.float32, device=device)
        matmul_0[lambda meta: (1 * triton.cdiv(10, meta["BLOCK_M"]) * triton.cdiv(96, meta["BLOCK_N"]),)](x0, p0, p2, scratch1)
        elements_2[lambda meta: (triton.cdiv(120, meta["LANES"]),)](scratch3, LANES=128, num_warps=1, num_stages=1)
        memory0, memory1, memory2, memory3 = p3, scratch3, p1, scratch2
        matmul_2[lambda meta: (1 * triton.cdiv(5, meta["BLOCK_M"]) * triton.cdiv(96, meta["BLOCK_N"]),)](memory0, memory1, memory2, memory3)
        memory0, memory1, memory2, memory3 = scratch1, scratch2, scratch3, scratch0
        elements_4[lambda meta: (triton.cdiv(120, meta["LANES"]),)](memory0, memory1, memory2, memory3, LANES=128, num_warps=1, num_stages=1)
        memory0, memory1, memory2, memory3 = scratch1, scratch2, scratch3, scratch5
        elements_4[lambda meta: (triton.cdiv(120, meta["LANES"]),)](memory0, memory1, memory2, memory3, LANES=128, num_warps=1, num_stages=1)
        memory0, memory1, memory2, memory3 = p3, scratch5, p1, scratch4
        matmul_2[lambda meta: (1 * triton.cdiv(5, meta["BLOCK_M"]) * triton.cdiv(96, meta["BLOCK_N"]),)](memory0, memory1, memory2, memory3)
        elements_7[lambda meta: (triton.cdiv(120, meta["LANES"]),)](scratch0, scratch1, scratch2, scratch3, scratch4, LANES=128, num_warps=1, num_stages=1)
        elements_8[lambda meta: (triton.cdiv(240, meta["LANES"]),)](out0, scratch0, LANES=128, num_warps=1, num_stages=1)
        return out0
