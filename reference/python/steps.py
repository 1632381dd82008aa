"""Steps of forward(): operators whose result jumps where their argument hardly moves, as `round(x / scale)`, a comparison, the choice of topk.

Beside a jump the last bit of the argument decides, and two honest computations may fall on either side. What follows from that is found by experiment: forward()
runs in float64 several times, and each time the arguments of its steps are moved, by what rounding makes of them, up, down or by chance. An element that a
candidate has otherwise is explained where these results differ by as much. Arguments that the reference has without any rounding stay: there is no doubt.
Only where elements are wrong by the usual rule does anybody ask (verification/slot_checker.cpp, drop_in/python/check_drop_in.py).
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from neighbours import within_rounding

STEPS = {"round", "floor", "ceil", "trunc", "fix", "frac", "sign", "sgn", "heaviside", "floor_divide", "remainder", "fmod", "gt", "ge", "lt", "le", "eq", "ne",
         "argmax", "argmin", "topk", "sort", "argsort", "bucketize", "searchsorted", "hardshrink", "threshold",
         "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic",
         "fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask"}
CHOOSING = {"max.dim", "min.dim"}
UNITS = 16  # in the last place: what a chain of roundings, summed in another order, moves a float32 by
UNITS_OF_HALF = 1
RUNS = 10  # the first two move everything up, and down
MOST_HELD = 1 << 27  # elements of all arguments of steps: 512 MiB in float32
SMALL = 0.1  # of an output's mean deviation: a step of one value among many
MOST_LARGE = 8  # one of so many elements, where they are off by more


def is_floating(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def decided(function):
    """Which argument the step is taken by: values among edges, not the edges."""
    return 1 if function.overloadpacket.__name__ == "searchsorted" else 0


def is_step(function, arguments, named):
    name = function.overloadpacket.__name__.rstrip("_")
    if len(arguments) <= decided(function) or not is_floating(arguments[decided(function)]):
        return False
    if name == "div":
        return named.get("rounding_mode") is not None
    if name in ("_to_copy", "_to_copy_default"):
        return named.get("dtype") is not None and not named["dtype"].is_complex and (not named["dtype"].is_floating_point or torch.finfo(named["dtype"]).bits == 8)
    return name in STEPS or "%s.%s" % (name, function._overloadname) in CHOOSING


class Record(TorchDispatchMode):
    """The floating arguments of every step, in order."""

    def __init__(self):
        super().__init__()
        self.steps, self.held = [], 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        if is_step(function, arguments, named):
            first = decided(function)
            values = [v.clone() for v in (*arguments[first:], *arguments[:first]) if is_floating(v)]
            self.held += sum(v.numel() for v in values)
            if self.held > MOST_HELD:
                raise MemoryError("the arguments of steps are too large to be kept")
            self.steps.append(values)
        return function(*arguments, **named)


def distance(wide, narrow):
    """How far the argument that decides a step may be off, 0 where it was not rounded; None: nothing is known. Both are the arguments, in float64 and the reference's."""
    if len(wide) != len(narrow) or any(a.shape != b.shape for a, b in zip(wide, narrow)):
        return None  # values decide which steps there are
    by, rounded = torch.zeros_like(wide[0]), torch.zeros_like(wide[0], dtype=torch.bool)
    for value, own in zip(wide, narrow):
        units, size = UNITS_OF_HALF if own.dtype in (torch.float16, torch.bfloat16) else UNITS, value.abs()
        if value.dim():
            size = torch.maximum(size, size.nanmean(-1, keepdim=True))
        off = (value - own.to(value.dtype)).abs()
        away = torch.maximum(size * (units * torch.finfo(own.dtype).eps), 2 * off)
        if away.dim() > by.dim() or any(a not in (1, b) for a, b in zip(reversed(away.shape), reversed(by.shape))):
            continue  # edges, with which each element is compared
        # Of one type there is nothing to compare with: what is whole or a half was rarely rounded.
        doubtful = off != 0 if own.dtype != value.dtype else torch.round(2 * value) != 2 * value
        by, rounded = torch.maximum(by, away.expand_as(by)), rounded | doubtful.expand_as(rounded)
    return torch.where(rounded, by, torch.zeros_like(by))


class Moved(TorchDispatchMode):
    """Moves the argument that decides each step by its `distances`, up or down: `sign(like)` is 1 or -1 for each element."""

    def __init__(self, distances, sign):
        super().__init__()
        self.distances, self.sign, self.at = distances, sign, 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = named or {}
        if is_step(function, arguments, named) and self.at < len(self.distances):
            at = decided(function)
            by, value = self.distances[self.at], arguments[at]
            self.at += 1
            if by is not None and by.shape == value.shape:
                moved = value + self.sign(by) * by
                moved = torch.where(torch.isfinite(moved), moved, value)
                if function.overloadpacket.__name__.endswith("_"):
                    value.copy_(moved)
                else:
                    arguments = (*arguments[:at], moved, *arguments[at + 1:])
        return function(*arguments, **named)


def signs(run):
    """Of the run's moves."""
    if run < 2:
        return lambda like: 1 - 2 * run
    generator = torch.Generator().manual_seed(run)
    return lambda like: torch.randint(0, 2, like.shape, generator=generator).to(like.device, like.dtype) * 2 - 1


def off_by_too_much(truth, differences):
    """More elements than steps should reach, by more than steps of single values make."""
    deviation = (truth - truth[torch.isfinite(truth)].mean()).abs()
    size = deviation[torch.isfinite(deviation)].mean() if truth.numel() else truth.sum()
    large = ~(differences <= SMALL * size)
    return int(large.sum()) > max(1, truth.numel() // MOST_LARGE)


def not_explained(again, output, positions, got, allowed, factor):
    """Those of `positions` (flat, in the output of that number) at which neither the reference's rounding nor a step explains `got` (None: no number).
    `again(wide, run)` gives forward()'s outputs, in float64 where `wide` is true, else as the reference computes them; `run` (where it is given): of neighbours.py. `allowed`: the error that nothing has to explain, 0 for whole numbers; `factor`: times the reference's own error, which is allowed in any case."""
    where = torch.tensor(positions)
    got, allowed = (torch.tensor([float("nan") if v is None else v for v in values], dtype=torch.float64) for values in (got, allowed))
    truth = again(True)[output]
    off = (got - truth.reshape(-1).double().cpu()[where]).abs()
    fine = within_rounding(again, output, truth, where, off, factor)
    where, got, allowed = where[~fine], got[~fine], allowed[~fine]
    return behind_no_step(again, output, where, got, allowed) if where.numel() else []


def behind_no_step(again, output, where, got, allowed):
    """Those of `where` at which no step explains `got`."""
    positions = where.tolist()
    with Record() as narrow:
        again(False)
    if not narrow.steps:
        return positions
    with Record() as wide:
        truth = again(True)[output]
    distances = [distance(*pair) for pair in zip(wide.steps, narrow.steps)] if len(wide.steps) == len(narrow.steps) else []
    exact = truth.reshape(-1).double().cpu()
    if off_by_too_much(exact, (got - exact[where]).abs()):
        return positions
    seen = [exact[where]]
    for run in range(RUNS):
        with Moved(distances, signs(run)):
            seen.append(again(True)[output].reshape(-1).double().cpu()[where])
    seen = torch.stack(seen)
    if not truth.is_floating_point():
        return where[~(seen == got).any(0)].tolist()
    low, high = seen.min(0).values, seen.max(0).values
    width = high - low
    fine = (width > 0) & (got >= low - width - allowed) & (got <= high + width + allowed)  # false where one of them is NaN
    return where[~fine].tolist()
