# Task: convolution_grouped
# Reference: aten.convolution.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
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
def convolution_0(x0_ptr, p0_ptr, p1_ptr, out0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # convolution, m x n x k = 4 x 56 x 18, 4 of them
    program = tl.program_id(0)
    tiles_m = (4 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (56 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b1 = batch // 2
    b0 = batch % 2
    pixel0 = n // 8
    image0 = pixel0 * 3 + -2
    pixel1 = n % 8
    image1 = pixel1 * 3 + -2
    place = image0 * 23 + image1
    image_at = x0_ptr + 1932 * b0 + 966 * b1
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = tl.arange(0, BLOCK_K)
    weights_at = p0_ptr + 72 * b1
    for step in range(0, (18 + BLOCK_K - 1) // BLOCK_K):
        of_k = step * BLOCK_K + k
        channel = of_k // 9
        tap = of_k % 9
        tap1 = tap % 3
        tap0 = tap // 3
        at0 = image0[None, :] + (tap0 * 2)[:, None]
        at1 = image1[None, :] + (tap1 * 2)[:, None]
        inside = (at0 >= 0) & (at0 < 21) & (at1 >= 0) & (at1 < 23)
        columns = tl.load(image_at + (channel * 483 + tap0 * 46 + tap1 * 2)[:, None] + place[None, :], mask=(of_k[:, None] < 18) & (n[None, :] < 56) & (inside), other=0.0)
        rows = tl.load(weights_at + m[:, None] * 18 + of_k[None, :], mask=(m[:, None] < 4) & (of_k[None, :] < 18), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p1_3 = tl.load(p1_ptr + 4 * b1 + m[:, None], mask=m[:, None] < 4, other=0.0)
    tl.store(out0_ptr + 448 * b0 + 224 * b1 + 56 * m[:, None] + n[None, :], acc + p1_3, mask=(m[:, None] < 4) & (n[None, :] < 56))


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
        out0 = torch.empty((2, 8, 7, 8), dtype=torch.float32, device=device)
        convolution_0[lambda meta: (4 * triton.cdiv(4, meta["BLOCK_M"]) * triton.cdiv(56, meta["BLOCK_N"]),)](x0, p0, p1, out0)
        return out0
