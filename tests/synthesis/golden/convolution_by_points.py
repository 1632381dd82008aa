# Task: convolution_by_points
# Reference: aten.convolution.default, aten.gelu.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":16,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: matrix product
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 16}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 32}, num_warps=4, num_stages=2),
    ],
    key=[],
)
@triton.jit
def matmul_0(x0_ptr, p0_ptr, p1_ptr, out0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # matrix product, m x n x k = 12 x 63 x 5, 2 of them
    program = tl.program_id(0)
    tiles_m = (12 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (63 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    k = tl.arange(0, BLOCK_K)
    rows_at = p0_ptr + m[:, None] * 5 + k[None, :]
    columns_at = x0_ptr + 315 * b0 + k[:, None] * 63 + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, 5 // BLOCK_K * BLOCK_K, BLOCK_K):
        rows = tl.load(rows_at + k0, mask=(m[:, None] < 12), other=0.0)
        columns = tl.load(columns_at + k0 * 63, mask=(n[None, :] < 63), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    rest = 5 // BLOCK_K * BLOCK_K
    rows = tl.load(rows_at + rest, mask=(m[:, None] < 12) & (k[None, :] < 5 - rest), other=0.0)
    columns = tl.load(columns_at + rest * 63, mask=(n[None, :] < 63) & (k[:, None] < 5 - rest), other=0.0)
    acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p1_3 = tl.load(p1_ptr + m[:, None], mask=m[:, None] < 12, other=0.0)
    add4 = acc + p1_3
    mul6 = add4 * 0.5
    mul8 = add4 * 0.707106781
    tl.store(out0_ptr + 756 * b0 + 63 * m[:, None] + n[None, :], mul6 + (mul6 * tl.erf(mul8)), mask=(m[:, None] < 12) & (n[None, :] < 63))


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
        out0 = torch.empty((2, 12, 7, 9), dtype=torch.float32, device=device)
        matmul_0[lambda meta: (2 * triton.cdiv(12, meta["BLOCK_M"]) * triton.cdiv(63, meta["BLOCK_N"]),)](x0, p0, p1, out0)
        return out0
