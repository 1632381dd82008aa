"""The float64 oracle of a task where memory or a device does not hold it at once: piece by piece along the batch.

Whether the elements of a batch are independent is not taken from the graph but found out: what a piece gives has to agree with the reference's own
results of the whole batch, as nearly as a candidate has to (base/defaults.hpp). A BatchNorm in training mode does not, and then there is no oracle.
"""
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MOST_PIECES = 64
TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.float64: 1e-9}  # of others 1e-4


class NotIndependent(TypeError):
    pass


def widened(value):
    """A float64 copy; of other types a plain copy, since forward() may write to what it is given."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.double() if value.is_floating_point() and value.dtype != torch.float64 else value.clone()


CASTING = weakref.WeakSet()  # models in float64 whose forward() casts to float32, and could not meet its own parameters


class WideCasts(TorchDispatchMode):
    """What is asked for in float32 is made in float64."""

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        if named.get("dtype") is torch.float32:
            named["dtype"] = torch.float64
        return function(*arguments, **named)


def in_float64(model, arguments):
    """model(*arguments), of a model in float64 or not."""
    if model not in CASTING:
        return model(*arguments)
    with WideCasts():
        return model(*arguments)


def is_full(error):
    """Does this error say that memory, of the host or of a device, is used up?"""
    text = str(error)
    return isinstance(error, MemoryError) or any(s in text for s in ("out of memory", "allocate memory", "not enough memory", "bad_alloc"))


def agrees(wide, reference):
    tolerance = TOLERANCES.get(reference.dtype, 1e-4)
    bound = tolerance * (wide.abs() + wide.abs().mean())
    return bool(((wide - reference.double()).abs() <= bound).logical_or_(wide.isnan() & reference.isnan()).all())


def batch_of(outputs):
    """The elements of the batch: the first extent that all outputs have."""
    extents = {o.shape[0] if o.dim() else 1 for o in outputs}
    batch = extents.pop()
    if extents or batch < 2:
        raise NotIndependent("the outputs have no batch in common")
    return batch


def ways_to_slice(arguments, batch):
    """Positions of the arguments that are cut with the batch, the likely ones first: all whose first extent is the batch's, or the first of them (a
    square matrix beside it is a factor)."""
    fitting = [i for i, v in enumerate(arguments) if isinstance(v, torch.Tensor) and v.dim() and v.shape[0] == batch]
    return [fitting, fitting[:1]] if len(fitting) > 1 else [fitting] if fitting else []


def in_pieces(call, arguments, outputs, pieces, receive):
    """call(arguments) -> outputs of the float64 model, on `pieces` parts of the batch, one after the other. `receive(output, begin, end, values)` takes
    those of each floating output. Raises NotIndependent where pieces do not agree with `outputs`, the reference's own."""
    batch = batch_of(outputs)
    size = -(-batch // pieces)
    why = "no input has the outputs' batch"
    for cut in ways_to_slice(arguments, batch):
        try:
            for begin in range(0, batch, size):
                end = min(batch, begin + size)
                got = call([widened(v[begin:end] if i in cut else v) for i, v in enumerate(arguments)])
                for i, (wide, reference) in enumerate(zip(got, outputs)):
                    if not reference.is_floating_point():
                        continue
                    if wide.dtype != torch.float64:
                        raise TypeError("forward() casts its result to %s" % wide.dtype)
                    part = reference[begin:end]
                    if wide.shape != part.shape or not agrees(wide, part):
                        raise NotIndependent("elements of the batch depend on each other")
                    receive(i, begin, end, wide)
                del got
            return
        except Exception as e:  # what forward() says of a shape that it was not made for
            if is_full(e):
                raise
            why = " ".join(str(e).split())[:120]
    raise NotIndependent(why)
