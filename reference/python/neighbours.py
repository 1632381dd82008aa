"""How far the reference's own numbers may be off: its error on inputs that lie beside a set of inputs, a unit in the last place away.

The error on the set itself is one sample for each element. Where an output has few of them (a loss, the running mean of one channel), that sample may be small by
luck, and a kernel that rounds otherwise would be called wrong. Asked only where elements are wrong by the usual rule (steps.not_explained()).
"""
import torch

RUNS = 12
FEW = 256  # elements of an output; the largest error of more is no luck
LUCK = 1000  # times the error that is allowed: who is off by more is asked for nothing, which spares a slow reference the runs


def is_few(truth, off, allowed):
    """Can the reference's luck be what makes elements wrong that are `off` by so much?"""
    return truth.is_floating_point() and truth.numel() <= FEW and bool((off <= LUCK * allowed).all())  # false where one is NaN


def moved(value, run):
    """Each element a unit in the last place of its type up or down, by chance."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(run)
    sign = torch.randint(0, 2, value.shape, generator=generator).to(value.device, value.dtype) * 2 - 1
    return value * (1 + sign * torch.finfo(value.dtype).eps)


def rounding(again, output):
    """The error of the reference against float64 in the output of that number: of the largest errors beside the inputs the upper quartile, since one of them may have jumped."""
    errors = []
    for run in range(RUNS):
        narrow, wide = (again(in_wide, lambda value: moved(value, run))[output].reshape(-1).double().cpu() for in_wide in (False, True))
        off = (narrow - wide).abs()
        errors.append(float(off[torch.isfinite(off)].max()) if bool(torch.isfinite(off).any()) else 0.0)
    return sorted(errors)[-1 - RUNS // 4]
