# Task: attention_causal_blocks
# Reference: aten.transpose.int, aten.expand.default, aten._reshape_alias.default, aten.expand.default,
#    aten._reshape_alias.default, aten.bmm.default, aten._unsafe_view.default, aten.ones.default,
#    aten.triu.default, aten.masked_fill.Scalar, aten._softmax.default, aten.expand.default,
#    aten._reshape_alias.default, aten.expand.default, aten._reshape_alias.default, aten.bmm.default,
#    aten._unsafe_view.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":64,"lanes":16,"stages":2,"steps":16,"warps":4},{"columns":16,"lanes":64,"stages":2,"steps":16,"warps":4}],"block":{"columns":32,"lanes":32,"stages":2,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":1,"lanes":1,"stages":1,"steps":256,"warps":2}],"block":{"columns":1,"lanes":1,"stages":1,"steps":256,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[{"columns":32,"lanes":32,"stages":3,"steps":32,"warps":4},{"columns":32,"lanes":16,"stages":3,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":3,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


# Region 1: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_K": 16, "BLOCK_N": 32}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 64}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 64, "BLOCK_K": 16, "BLOCK_N": 16}, num_warps=4, num_stages=2),
    ],
    key=[],
)
@triton.jit
def matmul_0(x0_ptr, x1_ptr, scratch1_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 192 x 200 x 16, 2 of them
    program = tl.program_id(0)
    tiles_m = (192 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (200 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    # 8 rows of tiles at a time: programs that run together share rows and columns in the L2 cache
    group = tile // (8 * tiles_n)
    rows_here = tl.minimum(tiles_m - group * 8, 8)
    tile_m = group * 8 + tile % (8 * tiles_n) % rows_here
    tile_n = tile % (8 * tiles_n) // rows_here
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    k = tl.arange(0, BLOCK_K)
    rows_at = x0_ptr + 3072 * b0 + m[:, None] * 16 + k[None, :]
    columns_at = x1_ptr + 3200 * b0 + n[:, None] * 16 + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 16, BLOCK_K):
        rows = tl.load(rows_at + k0)
        columns = tl.trans(tl.load(columns_at + k0, mask=(n[:, None] < 200), other=0.0))
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    ge4 = tl.cast(n[None, :], tl.int32) >= (tl.cast(m[:, None], tl.int32) + (-2))
    tl.store(scratch1_ptr + 38400 * b0 + 200 * m[:, None] + n[None, :], tl.where(ge4, float("-inf"), acc), mask=n[None, :] < 200)


# Region 2: 384 x 200 (reduced)
@triton.autotune(
    configs=[
        triton.Config({"STEPS": 256}, num_warps=1, num_stages=1),
        triton.Config({"STEPS": 256}, num_warps=2, num_stages=1),
    ],
    key=[],
)
@triton.jit
def rows_2(scratch0_ptr, scratch1_ptr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    step = tl.arange(0, STEPS)
    in_step = step < 200
    scratch1_0 = tl.load(scratch1_ptr + 200 * program + step, mask=in_step, other=float("-inf"))
    peak1 = tl.reduce(scratch1_0, axis=0, combine_fn=higher)
    sub2 = scratch1_0 - peak1
    exp_nonpositive3 = tl.exp(sub2)
    sum4 = tl.sum(tl.where(in_step, exp_nonpositive3, 0.0), axis=0)
    tl.store(scratch0_ptr + 200 * program + step, exp_nonpositive3 / sum4, mask=in_step)


# Region 3: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 16}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 32, "BLOCK_K": 32, "BLOCK_N": 32}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 32, "BLOCK_N": 32}, num_warps=4, num_stages=3),
    ],
    key=[],
)
@triton.jit
def matmul_2(x2_ptr, out0_ptr, scratch0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 192 x 17 x 200, 2 of them
    program = tl.program_id(0)
    tiles_m = (192 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (17 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    # 8 rows of tiles at a time: programs that run together share rows and columns in the L2 cache
    group = tile // (8 * tiles_n)
    rows_here = tl.minimum(tiles_m - group * 8, 8)
    tile_m = group * 8 + tile % (8 * tiles_n) % rows_here
    tile_n = tile % (8 * tiles_n) // rows_here
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    k = tl.arange(0, BLOCK_K)
    rows_at = scratch0_ptr + 38400 * b0 + m[:, None] * 200 + k[None, :]
    columns_at = x2_ptr + 3400 * b0 + k[:, None] * 17 + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 200 // BLOCK_K * BLOCK_K, BLOCK_K):
        rows = tl.load(rows_at + k0)
        columns = tl.load(columns_at + k0 * 17, mask=(n[None, :] < 17), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    rest = 200 // BLOCK_K * BLOCK_K
    rows = tl.load(rows_at + rest, mask=(k[None, :] < 200 - rest), other=0.0)
    columns = tl.load(columns_at + rest * 17, mask=(n[None, :] < 17) & (k[:, None] < 200 - rest), other=0.0)
    acc = tl.dot(rows, columns, acc, input_precision="ieee")
    tl.store(out0_ptr + 3264 * b0 + 17 * m[:, None] + n[None, :], acc, mask=n[None, :] < 17)


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
        x2 = tensors[2]
        out0 = torch.empty((2, 192, 17), dtype=torch.float32, device=device)
        scratch0 = torch.empty(76800, dtype=torch.float32, device=device)
        scratch1 = torch.empty(76800, dtype=torch.float32, device=device)
        matmul_0[lambda meta: (2 * triton.cdiv(192, meta["BLOCK_M"]) * triton.cdiv(200, meta["BLOCK_N"]),)](x0, x1, scratch1)
        rows_2[(384,)](scratch0, scratch1)
        matmul_2[lambda meta: (2 * triton.cdiv(192, meta["BLOCK_M"]) * triton.cdiv(17, meta["BLOCK_N"]),)](x2, out0, scratch0)
        return out0
