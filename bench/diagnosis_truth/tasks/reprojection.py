import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The mean squared error of 512 guessed cameras (3 x 4 matrices): where they see 2048 points, and where those were seen."""

    def __init__(self):
        super().__init__()

    def forward(self, cameras, points, seen):
        m = cameras.view(-1, 3, 4)
        p = m[:, :, :3] @ points + m[:, :, 3:]
        w = p[:, 2].clamp(min=0.5)
        return ((p[:, 0] / w - seen[0]) ** 2 + (p[:, 1] / w - seen[1]) ** 2).mean(dim=1)


def get_inputs():
    cameras = torch.randn(512, 12) * 0.3
    cameras[:, 11] += 3
    return [cameras, torch.randn(3, 2048), torch.randn(2, 2048)]


def get_init_inputs():
    return []
