"""Every form of cross entropy: labels and probabilities, smoothed or not, with weights, with labels that do not count, over rows and over images."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.weighted = nn.CrossEntropyLoss(torch.rand(11) + 0.5, ignore_index=3, label_smoothing=0.2)

    def forward(self, x, labels, chances, images, pixels):
        results = [self.smooth(x, labels), self.weighted(x, labels), F.cross_entropy(x, labels)]
        for reduction in ("none", "mean", "sum"):
            for smoothing in (0.0, 0.3):
                for weight in (None, self.weighted.weight):
                    results.append(F.cross_entropy(x, labels, weight, ignore_index=4, reduction=reduction, label_smoothing=smoothing))
                    results.append(F.cross_entropy(x, chances, weight, reduction=reduction, label_smoothing=smoothing))
                    results.append(F.cross_entropy(images, pixels, weight, ignore_index=4, reduction=reduction, label_smoothing=smoothing))
        return tuple(results)


def get_inputs():
    return [torch.randn(40, 11), torch.randint(0, 11, (40,)), torch.softmax(torch.randn(40, 11), 1), torch.randn(2, 11, 5, 6), torch.randint(0, 11, (2, 5, 6))]


def get_init_inputs():
    return []
