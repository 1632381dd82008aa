# Task: product_in_triangle
# Reference: aten.mm.default, aten.triu.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":32,"stages":3,"steps":16,"warps":4},{"columns":32,"lanes":16,"stages":3,"steps":16,"warps":4}],"block":{"columns":16,"lanes":16,"stages":3,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 16}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 32, "BLOCK_K": 16, "BLOCK_N": 32}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 32}, num_warps=4, num_stages=3),
    ],
    key=[],
)
@triton.jit
def matmul_0(x0_ptr, x1_ptr, out0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 40 x 40 x 40
    program = tl.program_id(0)
    tiles_m = (40 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (40 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    # 8 rows of tiles at a time: programs that run together share rows and columns in the L2 cache
    group = tile // (8 * tiles_n)
    rows_here = tl.minimum(tiles_m - group * 8, 8)
    tile_m = group * 8 + tile % (8 * tiles_n) % rows_here
    tile_n = tile % (8 * tiles_n) // rows_here
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    rows_at = x0_ptr + m[:, None] * 40 + k[None, :]
    columns_at = x1_ptr + k[:, None] * 40 + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # tiles below the diagonal are zeros
    needed = (tile_n + 1) * BLOCK_N > tile_m * BLOCK_M
    end = tl.where(needed, 40, 0)
    for k0 in range(0, end, BLOCK_K):
        rows = tl.load(rows_at + k0, mask=(m[:, None] < 40) & (k[None, :] < 40 - k0), other=0.0)
        columns = tl.load(columns_at + k0 * 40, mask=(n[None, :] < 40) & (k[:, None] < 40 - k0), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    ge2 = tl.cast(n[None, :], tl.int32) >= tl.cast(m[:, None], tl.int32)
    tl.store(out0_ptr + 40 * m[:, None] + n[None, :], tl.where(ge2, acc, 0.0), mask=(m[:, None] < 40) & (n[None, :] < 40))


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
        out0 = torch.empty((40, 40), dtype=torch.float32, device=device)
        matmul_0[lambda meta: (1 * triton.cdiv(40, meta["BLOCK_M"]) * triton.cdiv(40, meta["BLOCK_N"]),)](x0, x1, out0)
        return out0
