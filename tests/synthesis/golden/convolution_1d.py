# Task: convolution_1d
# Reference: aten.convolution.default
# Schedule:
#    {"regions":[{"alternatives":[],"block":{"columns":16,"lanes":16,"stages":2,"steps":16,"warps":4},"by_residue":true,"chunks":1,"group":8,"one_pass":true,"precision":"ieee","split_first":false}]}
# Written by PRAGMA's built-in coder (docs/synthesis.md).
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRAGMA_PARAMS = True  # load_params() takes the task's parameters in the order of its state_dict


# Region 1: convolution
@triton.jit
def convolution_0(x0_ptr, p0_ptr, p1_ptr, out0_ptr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr):
    # convolution, m x n x k = 5 x 15 x 12, 2 of them
    program = tl.program_id(0)
    tiles_m = (5 + BLOCK_M - 1) // BLOCK_M
    tiles_n = (15 + BLOCK_N - 1) // BLOCK_N
    tile = program % (tiles_m * tiles_n)
    outer = program // (tiles_m * tiles_n)
    tile_m = tile % tiles_m
    tile_n = tile // tiles_m
    batch = outer
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    b0 = batch
    pixel0 = n
    image0 = pixel0 * 3
    place = image0
    image_at = x0_ptr + 150 * b0
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    k = tl.arange(0, BLOCK_K)
    weights_at = p0_ptr
    for step in range(0, (12 + BLOCK_K - 1) // BLOCK_K):
        of_k = step * BLOCK_K + k
        channel = of_k // 4
        tap = of_k % 4
        tap0 = tap
        columns = tl.load(image_at + (channel * 50 + tap0 * 2)[:, None] + place[None, :], mask=(of_k[:, None] < 12) & (n[None, :] < 15), other=0.0)
        rows = tl.load(weights_at + m[:, None] * 12 + of_k[None, :], mask=(m[:, None] < 5) & (of_k[None, :] < 12), other=0.0)
        acc = tl.dot(rows, columns, acc, input_precision="ieee")
    p1_3 = tl.load(p1_ptr + m[:, None], mask=m[:, None] < 5, other=0.0)
    tl.store(out0_ptr + 75 * b0 + 15 * m[:, None] + n[None, :], acc + p1_3, mask=(m[:, None] < 5) & (n[None, :] < 15))


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
        out0 = torch.empty((2, 5, 15), dtype=torch.float32, device=device)
        convolution_0[(2,)](x0, p0, p1, out0, BLOCK_M=16, BLOCK_K=16, BLOCK_N=16, num_warps=4, num_stages=2)
        return out0
