# Task: convolution_3d
# Reference: aten.convolution.default, aten.tanh.default
# Schedule:
#    {"regions":[{"alternatives":[{"columns":32,"lanes":16,"stages":2,"steps":32,"warps":4}],"block":{"columns":16,"lanes":16,"stages":2,"steps":32,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

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
    # convolution, m x n x k = 8 x 240 x 54
    program = tl.program_id(0)
    tiles_m = (8 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (240 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    pixel0 = n // 40
    image0 = pixel0 + -1
    pixel1 = n // 5 % 8
    image1 = pixel1 + -1
    pixel2 = n % 5
    image2 = pixel2 + -1
    place = image0 * 35 + image1 * 5 + image2
    image_at = x0_ptr
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = tl.arange(0, BLOCK_K)
    weights_at = p0_ptr
    for step in range(0, (54 + BLOCK_K - 1) // BLOCK_K):
        of_k = step * BLOCK_K + k
        channel = of_k // 18
        tap = of_k % 18
        tap2 = tap % 3
        tap1 = tap // 3 % 2
        tap0 = tap // (3 * 2)
        at0 = image0[None, :] + (tap0)[:, None]
        at1 = image1[None, :] + (tap1)[:, None]
        at2 = image2[None, :] + (tap2)[:, None]
        inside = (at0 >= 0) & (at0 < 6) & (at1 >= 0) & (at1 < 7) & (at2 >= 0) & (at2 < 5)
        columns = tl.load(image_at + (channel * 210 + tap0 * 35 + tap1 * 5 + tap2)[:, None] + place[None, :], mask=(of_k[:, None] < 54) & (n[None, :] < 240) & (inside), other=0.0)
        rows = tl.load(weights_at + m[:, None] * 54 + of_k[None, :], mask=(m[:, None] < 8) & (of_k[None, :] < 54), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p1_3 = tl.load(p1_ptr + m[:, None], mask=m[:, None] < 8, other=0.0)
    add4 = acc + p1_3
    tl.store(out0_ptr + 240 * m[:, None] + n[None, :], libdevice.tanh(add4), mask=(m[:, None] < 8) & (n[None, :] < 240))


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
        out0 = torch.empty((1, 8, 6, 8, 5), dtype=torch.float32, device=device)
        convolution_0[lambda meta: (1 * triton.cdiv(8, meta["BLOCK_M"]) * triton.cdiv(240, meta["BLOCK_N"]),)](x0, p0, p1, out0)
        return out0
