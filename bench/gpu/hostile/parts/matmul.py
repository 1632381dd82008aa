# What the candidates for task_matmul.py share: `run` puts it before each of them.
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
    tl.store(c + m[:, None] * N + n[None, :], acc)


def matmul(a, b, precision):
    (rows, inner), columns = a.shape, b.shape[1]
    c = torch.empty((rows, columns), device=a.device, dtype=torch.float32)
    matmul_kernel[(rows // 64, columns // 64)](a, b, c, rows, columns, inner, BM=64, BN=64, BK=32, PRECISION=precision, num_warps=4)
    return c


