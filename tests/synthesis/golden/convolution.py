# Task: convolution
# Reference: aten.convolution.default, aten.relu.default, aten.add.Tensor
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":3,"steps":16,"warps":4}],"block":{"columns":16,"lanes":16,"stages":3,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: convolution
@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 16}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 16, "BLOCK_K": 16, "BLOCK_N": 32}, num_warps=4, num_stages=3),
    ],
    key=[],
)
@triton.jit
def convolution_0(x0_ptr, p0_ptr, p1_ptr, p2_ptr, out0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # convolution, m x n x k = 10 x 77 x 45, 2 of them
    program = tl.program_id(0)
    tiles_m = (10 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (77 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    pixel0 = n // 11
    image0 = pixel0 * 2 + -1
    pixel1 = n % 11
    image1 = pixel1 + -2
    place = image0 * 11 + image1
    image_at = x0_ptr + 429 * b0
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = tl.arange(0, BLOCK_K)
    weights_at = p1_ptr
    for step in range(0, (45 + BLOCK_K - 1) // BLOCK_K):
        of_k = step * BLOCK_K + k
        channel = of_k // 15
        tap = of_k % 15
        tap1 = tap % 5
        tap0 = tap // 5
        at0 = image0[None, :] + (tap0)[:, None]
        at1 = image1[None, :] + (tap1)[:, None]
        inside = (at0 >= 0) & (at0 < 13) & (at1 >= 0) & (at1 < 11)
        columns = tl.load(image_at + (channel * 143 + tap0 * 11 + tap1)[:, None] + place[None, :], mask=(of_k[:, None] < 45) & (n[None, :] < 77) & (inside), other=0.0)
        rows = tl.load(weights_at + m[:, None] * 45 + of_k[None, :], mask=(m[:, None] < 10) & (of_k[None, :] < 45), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p2_4 = tl.load(p2_ptr + m[:, None], mask=m[:, None] < 10, other=0.0)
    add5 = acc + p2_4
    p0_7 = tl.load(p0_ptr + m[:, None], mask=m[:, None] < 10, other=0.0)
    tl.store(out0_ptr + 770 * b0 + 77 * m[:, None] + n[None, :], tl.where(add5 < 0.0, 0.0, add5) + p0_7, mask=(m[:, None] < 10) & (n[None, :] < 77))


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
        out0 = torch.empty((2, 10, 7, 11), dtype=torch.float32, device=device)
        convolution_0[lambda meta: (2 * triton.cdiv(10, meta["BLOCK_M"]) * triton.cdiv(77, meta["BLOCK_N"]),)](x0, p0, p1, p2, out0)
        return out0
