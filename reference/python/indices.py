"""What the indices of argmax, argmin, max, min, topk, sort and argsort point to: their source and dimension, found while forward() runs.

An index is judged by the value it points to (verification/compare.cpp); only where a candidate's indices differ from the reference's does
anybody ask.
"""
import torch
from torch.overrides import TorchFunctionMode

# Of several equal values Torch documents the first for these; for the others no order.
FIRST = {"argmax", "argmin", "max", "min"}
ANY = {"topk", "sort", "argsort"}


class IndexRecord(TorchFunctionMode):
    """Remembers (indices, source, dimension, "first wins") of every such operator that runs inside."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_function__(self, function, types, arguments=(), named=None):
        named = named or {}
        result = function(*arguments, **named)
        name = getattr(function, "__name__", "")
        if name in FIRST | ANY:
            self.note(name, arguments, named, result)
        return result

    def note(self, name, arguments, named, result):
        indices = result if isinstance(result, torch.Tensor) else getattr(result, "indices", None)
        source = arguments[0] if arguments else named.get("input")
        if indices is None or indices.dtype != torch.int64 or not isinstance(source, torch.Tensor) or not source.is_floating_point():
            return
        position = 2 if name == "topk" else 1
        dimension = arguments[position] if len(arguments) > position else named.get("dim", None if name in ("argmax", "argmin") else -1)
        if dimension is not None and not isinstance(dimension, int) or isinstance(dimension, bool):
            return
        self.found.append((indices, source, dimension, name in FIRST))


def point_to(record, output, positions, indices, reference):
    """For the output's elements at `positions` (flat) the values that `indices` and the reference's own indices point to, and how far the
    values of their row are from its mean. A value is None where there is none, or where a row chooses one element twice. None instead of
    all that when the output is no result of such an operator."""
    for result, source, dimension, first in record.found:
        if result.data_ptr() == output.data_ptr() and result.shape == output.shape:
            break
    else:
        return None
    positions, asked = torch.tensor(positions), torch.tensor(indices)
    mine = reference.clone().reshape(-1)
    theirs = mine[positions]
    mine[positions] = asked
    shape = list(output.shape)
    if dimension is None:
        source, dimension, shape = source.reshape(-1), 0, [1]
    dimension %= max(source.dim(), 1)
    if len(shape) < source.dim():
        shape.insert(dimension, 1)
    if len(shape) != source.dim():
        return None
    lanes = source.movedim(dimension, -1)
    length = lanes.shape[-1]
    where = torch.arange(mine.numel()).reshape(shape).movedim(dimension, -1).reshape(-1, shape[dimension])
    chosen = mine[where].sort(1).values
    twice = (chosen[:, 1:] == chosen[:, :-1]).any(1)
    lane_of = torch.empty(mine.numel(), dtype=torch.int64)
    lane_of[where.reshape(-1)] = torch.arange(where.numel()) // shape[dimension]
    lane = lane_of[positions]
    rows = lanes.reshape(-1, length)[lane]
    got = rows.gather(1, asked.clamp(0, length - 1).unsqueeze(1)).squeeze(1)
    best = rows.gather(1, theirs.unsqueeze(1)).squeeze(1)
    spread = (rows - rows.mean(1, keepdim=True)).abs().mean(1)
    spread = torch.where(torch.isfinite(spread), spread, torch.zeros_like(spread))
    good = (asked >= 0) & (asked < length) & ~twice[lane] & torch.isfinite(got) & torch.isfinite(best)
    return {"got": [v if ok else None for v, ok in zip(got.tolist(), good.tolist())],
            "best": [v if ok else 0 for v, ok in zip(best.tolist(), good.tolist())], "spread": spread.tolist(), "first": first}
