# Task: product_pool_sum
# Reference: aten.expand.default, aten._reshape_alias.default, aten.expand.default,
#    aten._reshape_alias.default, aten.bmm.default, aten._unsafe_view.default, aten.avg_pool2d.default,
#    aten.sum.dim_IntList
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":16,"lanes":16,"stages":2,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false},{"alternatives":[],"block":{"columns":1,"lanes":64,"stages":1,"steps":1,"warps":1},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: matrix product
@triton.jit
def matmul_0(x0_ptr, x1_ptr, scratch0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 3 x 2 x 2, 4 of them
    program = tl.program_id(0)
    tiles_m = (3 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (2 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    k = tl.arange(0, BLOCK_K)
    rows_at = x0_ptr + 6 * b0 + m[:, None] * 2 + k[None, :]
    columns_at = x1_ptr + 4 * b0 + k[:, None] * 2 + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 2 // BLOCK_K * BLOCK_K, BLOCK_K):
        rows = tl.load(rows_at + k0, mask=(m[:, None] < 3), other=0.0)
        columns = tl.load(columns_at + k0 * 2, mask=(n[None, :] < 2), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    rest = 2 // BLOCK_K * BLOCK_K
    rows = tl.load(rows_at + rest, mask=(m[:, None] < 3) & (k[None, :] < 2 - rest), other=0.0)
    columns = tl.load(columns_at + rest * 2, mask=(n[None, :] < 2) & (k[:, None] < 2 - rest), other=0.0)
    acc = tl.dot(rows, columns, acc, input_precision="ieee")
    tl.store(scratch0_ptr + 6 * b0 + 2 * m[:, None] + n[None, :], acc, mask=(m[:, None] < 3) & (n[None, :] < 2))


# Region 2: 4 x 2 (window) x 2 (window)
@triton.jit
def windows_2(out0_ptr, scratch0_ptr, LANES: tl.constexpr):
    program = tl.program_id(0)
    lane = (program * LANES + tl.arange(0, LANES))
    in_lane = lane < 4
    sum1_lanes = tl.full([LANES], 0.0, tl.float32)
    for k1 in tl.static_range(2):
        for k2 in tl.static_range(2):
            scratch0_0 = tl.load(scratch0_ptr + 6 * lane + 2 * k1 + k2, mask=in_lane, other=0.0)
            sum1_lanes += scratch0_0
    tl.store(out0_ptr + lane, sum1_lanes * 0.25, mask=in_lane)


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
        out0 = torch.empty((2, 2, 1, 1), dtype=torch.float32, device=device)
        scratch0 = torch.empty(24, dtype=torch.float32, device=device)
        matmul_0[(4,)](x0, x1, scratch0, BLOCK_M=16, BLOCK_K=16, BLOCK_N=16, num_warps=4, num_stages=2)
        windows_2[lambda meta: (triton.cdiv(4, meta["LANES"]),)](out0, scratch0, LANES=64, num_warps=1, num_stages=1)
        return out0
