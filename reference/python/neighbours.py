"""How far the reference's own numbers may be off: its error on inputs and with parameters that lie beside the ones that are asked for, a unit in the last place away.

The error on the set itself is one sample for each element. Where an output has few of them (a loss, the running mean of one channel), that sample may be small by
luck, and a kernel that rounds otherwise would be called wrong. Asked only where elements are wrong by the usual rule (steps.not_explained()).
"""
import copy

import torch

from oracle import CASTING
from taskfile import is_foreign, state_tensors

RUNS = 12
FEW = 256  # elements of an output; the largest error of more is no luck
GROSS = 0.05  # of the largest value: who is off by more is asked for nothing, which spares a slow reference the runs


def is_few(truth, off):
    """Can the reference's luck be what makes elements wrong that are `off` by so much?"""
    return truth.is_floating_point() and 0 < truth.numel() <= FEW and bool((off <= GROSS * float(truth.abs().max())).all())  # false where one is NaN


def moved(value, run):
    """Each element a unit in the last place of its type up or down, by chance."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(run)
    sign = torch.randint(0, 2, value.shape, generator=generator).to(value.device, value.dtype) * 2 - 1
    return value * (1 + sign * torch.finfo(value.dtype).eps)


def beside(model, narrow, arguments, run):
    """A copy of the model, and the arguments, as they are in that run (None: the model itself, and its arguments). `narrow`: the reference's model, whose parameters are moved, where
    `model` is its float64 twin or itself. The model itself stays as it is: candidates read its parameters."""
    if run is None:
        return model, arguments
    copied = copy.deepcopy(model)
    if model in CASTING:
        CASTING.add(copied)
    with torch.no_grad():
        for (_, own), (_, given) in zip(state_tensors(copied), state_tensors(narrow)):
            if own.is_floating_point() and not is_foreign(given):
                own.copy_(moved(given, run))
    return copied, [moved(v, run) for v in arguments]


def rounding(again, output):
    """The error of the reference against float64 in the output of that number: of the largest errors of all runs the upper quartile, since one of them may have jumped.
    `again(wide, run)`: forward()'s outputs in float64 or as the reference computes them, from what beside() gives."""
    errors = []
    for run in range(RUNS):
        narrow, wide = (again(in_wide, run)[output].reshape(-1).double().cpu() for in_wide in (False, True))
        off = (narrow - wide).abs()
        errors.append(float(off[torch.isfinite(off)].max()) if bool(torch.isfinite(off).any()) else 0.0)
    return sorted(errors)[-1 - RUNS // 4]
