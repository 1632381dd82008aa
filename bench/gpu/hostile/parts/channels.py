# What the candidates for task_channels.py share: `run` puts it before each of them.
import torch
import torch.nn as nn
import triton
import triton.language as tl

LARGE = 17


def channels(columns):
    weight = torch.full((columns,), 0.02)
    weight[LARGE] = 1e5
    return weight

