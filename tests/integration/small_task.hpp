// A task that loads and runs in no time, for tests of everything round it.
#pragma once

inline constexpr const char* small_task = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(64, 4096)]

def get_init_inputs():
    return []
)";
