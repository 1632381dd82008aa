"""How far the reference's own numbers may be off: its error on inputs and with parameters that lie beside the ones that are asked for, a unit in the last place away.

The error on the set itself is one sample for each element. Where an output has few of them (a loss, the running mean of one channel), that sample may be small by
luck, and a kernel that rounds otherwise would be called wrong. The same where an output has many and few of these hang on a rounding (behind a batch norm over two
values that are nearly equal): these are asked for one by one. Asked only where elements are wrong by the usual rule (steps.not_explained()).
"""
import copy

import torch

from oracle import CASTING
from taskfile import is_foreign, state_tensors

RUNS = 12
FEW = 256  # elements of an output; the largest error of more is no luck
MOST_OF_MANY = 8  # one of so many elements may be asked for by itself
FIRST, HOPELESS = 4, 100  # who is off by more than so many times what is allowed by the first runs is not asked for again
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


def upper_quartile(errors):
    """For each element, over the runs: one of them may have jumped."""
    return errors.sort(0).values[-1 - RUNS // 4]


def within_rounding(again, output, truth, where, off, factor):
    """Which of the elements `where` are off by no more than `factor` times what the reference is off by there, beside its inputs: in an output of few elements by its largest error, in others
    by its error at that element. `again(wide, run)`: forward()'s outputs in float64 or as the reference computes them, from what beside() gives."""
    none, few = torch.zeros(off.shape, dtype=torch.bool), is_few(truth, off)
    if not few and (not truth.is_floating_point() or where.numel() > truth.numel() // MOST_OF_MANY or not bool(torch.isfinite(off).all())):
        return none
    largest, each = [], []
    for run in range(RUNS):
        narrow, wide = (again(in_wide, run)[output].reshape(-1).double().cpu() for in_wide in (False, True))
        error = (narrow - wide).abs().nan_to_num(nan=0.0, posinf=0.0)
        largest.append(error.max())
        each.append(error[where])
        if not few and run == FIRST - 1 and bool((off > HOPELESS * factor * torch.stack(each).max(0).values).any()):
            return none
    return off <= factor * (upper_quartile(torch.stack(largest)) if few else upper_quartile(torch.stack(each)))
