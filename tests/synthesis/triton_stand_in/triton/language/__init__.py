"""The part of triton.language that the built-in coder writes, on NumPy."""
import builtins as _py
import math as _math

import numpy as _np

constexpr = int
_most_programs = 1 << 31


class dtype:
    def __init__(self, name, kind):
        self.name, self.np = name, _np.dtype(kind)


float16, bfloat16 = dtype("fp16", "f2"), dtype("bf16", "f4")  # NumPy has no bfloat16: float32 values that it can hold, marked as such
float32, float64 = dtype("fp32", "f4"), dtype("fp64", "f8")
int64, int32, int16, int8 = dtype("int64", "i8"), dtype("int32", "i4"), dtype("int16", "i2"), dtype("int8", "i1")
uint8, int1 = dtype("uint8", "u1"), dtype("int1", "?")


class PropagateNan:
    NONE, ALL = "none", "all"


_np.seterr(all="ignore")
_INTEGERS = [_np.dtype(kind + size) for kind in "iu" for size in "1248"]
_LEAST = {t: int(_np.iinfo(t).min) for t in _INTEGERS}
_MOST = {t: int(_np.iinfo(t).max) for t in _INTEGERS}


def _array(x, like=None):
    """x as an array; a Python number takes the type of what it meets, as in Triton."""
    if isinstance(x, tensor):
        return x.a
    if isinstance(x, bool):
        return _np.array(x, "?")
    if isinstance(x, int):
        if like is not None and like.dtype.kind in "iuf":
            if like.dtype.kind in "iu" and not _LEAST[like.dtype] <= x <= _MOST[like.dtype]:
                return _np.array(x, "i8")
            return _np.array(x, like.dtype)
        return _np.array(x, "i4" if -2**31 <= x < 2**31 else "i8")
    if isinstance(x, float):
        return _np.array(x, like.dtype if like is not None and like.dtype.kind == "f" else "f4")
    raise TypeError(f"{x!r} in a kernel")


def _pair(x, y):
    a = _array(x, y.a if isinstance(y, tensor) else None)
    b = _array(y, x.a if isinstance(x, tensor) else None)
    if a.dtype == b.dtype:
        return a, b
    kinds = {a.dtype.kind, b.dtype.kind}
    if "f" in kinds:
        common = _py.max((t.dtype for t in (a, b) if t.dtype.kind == "f"), key=lambda t: t.itemsize)
    else:
        common = _np.result_type(a.dtype, b.dtype)
    return a.astype(common), b.astype(common)


def _checked(result, a, b, exact):
    """32-bit indices that overflow are a bug of the emitter."""
    if result.dtype == _np.dtype("i4") and exact is not None:
        if (exact(a, b, dtype="i8") != result).any():
            raise OverflowError("a 32-bit integer overflows")
    return tensor(result)


def _as_bfloat16(a):
    """Float32 values rounded to the nearest that bfloat16 can hold, ties to even."""
    import torch
    return torch.from_numpy(_np.array(a, "f4")).to(torch.bfloat16).float().numpy()


class tensor:
    def __init__(self, a, bf16=False):
        self.a, self.bf16 = _np.asarray(a), bf16
        if self.a.size > 1 << 20:
            raise ValueError(f"a tile of {self.a.size} elements")
        for extent in self.a.shape:
            if extent & (extent - 1):
                raise ValueError(f"a tile of shape {self.a.shape}: extents must be powers of two")

    shape = property(lambda self: list(self.a.shape))
    dtype = property(lambda self: self.a.dtype)

    half = property(lambda self: self.bf16 or self.a.dtype == _np.dtype("f2"))

    def _binary(self, other, f, exact=False):
        if isinstance(other, pointer):
            return NotImplemented
        if self.half or getattr(other, "half", False):
            raise TypeError("arithmetic in a half type")
        a, b = _pair(self, other)
        if a.shape and b.shape and len(a.shape) != len(b.shape):
            raise TypeError(f"shapes {a.shape} and {b.shape} have different ranks")
        return _checked(f(a, b), a, b, f if exact else None)

    def __add__(self, o): return self._binary(o, _np.add, True)
    def __sub__(self, o): return self._binary(o, _np.subtract, True)
    def __mul__(self, o): return self._binary(o, _np.multiply, True)
    def __radd__(self, o): return tensor(_array(o, self.a))._binary(self, _np.add, True)
    def __rsub__(self, o): return tensor(_array(o, self.a))._binary(self, _np.subtract, True)
    def __rmul__(self, o): return tensor(_array(o, self.a))._binary(self, _np.multiply, True)

    def __truediv__(self, o):
        a, b = _pair(self, o)
        if a.dtype.kind != "f":
            a, b = a.astype("f4"), b.astype("f4")
        return tensor(a / b)

    def __rtruediv__(self, o): return tensor(_array(o, self.a)) / self

    def __floordiv__(self, o):
        def towards_zero(a, b):
            if a.dtype.kind == "f":
                raise TypeError("// of floating-point values")
            safe = _np.where(b == 0, 1, b)
            return (_np.sign(a) * _np.sign(safe) * (_np.abs(a) // _np.abs(safe))).astype(a.dtype)
        return self._binary(o, towards_zero)

    def __rfloordiv__(self, o): return tensor(_array(o, self.a)) // self
    def __mod__(self, o): return self._binary(o, lambda a, b: _np.fmod(a, _np.where(b == 0, 1, b) if a.dtype.kind != "f" else b).astype(a.dtype))
    def __rmod__(self, o): return tensor(_array(o, self.a)) % self
    def __neg__(self): return tensor(-self.a)
    def __invert__(self): return tensor(~self.a)

    def _logic(self, o, f):
        a, b = _pair(self, o)
        if a.dtype.kind == "f":
            raise TypeError("a logical operator on floating-point values")
        return tensor(f(a, b))

    def __and__(self, o): return self._logic(o, _np.bitwise_and)
    def __or__(self, o): return self._logic(o, _np.bitwise_or)
    def __xor__(self, o): return self._logic(o, _np.bitwise_xor)
    def __rshift__(self, o): return self._logic(o, _np.right_shift)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    def __lt__(self, o): return self._binary(o, _np.less)
    def __le__(self, o): return self._binary(o, _np.less_equal)
    def __gt__(self, o): return self._binary(o, _np.greater)
    def __ge__(self, o): return self._binary(o, _np.greater_equal)
    def __eq__(self, o): return self._binary(o, _np.equal)
    def __ne__(self, o): return self._binary(o, _np.not_equal)
    __hash__ = None

    def __bool__(self):
        if self.a.shape:
            raise TypeError("a tile as a condition")
        return bool(self.a)

    def __index__(self):
        if self.a.shape:
            raise TypeError("a tile as a number")
        return int(self.a)

    def __getitem__(self, index):
        for i in index if isinstance(index, tuple) else (index,):
            if i is not None and i != slice(None):
                raise TypeError("only [:, None] and the like")
        return tensor(self.a[index], self.bf16)

    def to(self, t, bitcast=False):
        return tensor(self.a.view(t.np)) if bitcast else cast(self, t)


class pointer:
    """A buffer with the elements that a tile of pointers stands at."""

    def __init__(self, name, memory, written, bf16=False, at=None):
        self.name, self.memory, self.written, self.bf16 = name, memory, written, bf16
        self.at = _np.zeros((), "i8") if at is None else at

    def __add__(self, o): return pointer(self.name, self.memory, self.written, self.bf16, self.at + _array(o).astype("i8"))
    def __sub__(self, o): return pointer(self.name, self.memory, self.written, self.bf16, self.at - _array(o).astype("i8"))
    __radd__ = __add__

    def __getitem__(self, index):
        raise TypeError("a pointer is not indexed")


def _mask_for(p, mask):
    if mask is None:
        return _np.ones(p.at.shape, "?")
    m = _array(mask)
    if m.dtype != _np.dtype("?"):
        raise TypeError("a mask that is not boolean")
    return _np.broadcast_to(m, p.at.shape)  # raises where the mask is larger than the pointers


def _inside(p, at, what):
    if at.size and (at.min() < 0 or at.max() >= p.memory.size):
        raise IndexError(f"{what} {p.name}: element {at.min() if at.min() < 0 else at.max()} of {p.memory.size}")


def load(p, mask=None, other=None, eviction_policy="", cache_modifier=""):
    m = _mask_for(p, mask)
    _inside(p, p.at[m], "load of")
    if mask is not None and other is None:
        other = 77  # undefined on a GPU: something that shows
    out = _np.full(p.at.shape, 0 if other is None else _array(other).astype(p.memory.dtype), p.memory.dtype)
    out[m] = p.memory[p.at[m]]
    return tensor(out, p.bf16)


def store(p, value, mask=None, eviction_policy="", cache_modifier=""):
    m = _mask_for(p, mask)
    at = p.at[m]
    _inside(p, at, "store to")
    if _np.unique(at).size != at.size or p.written[at].any():
        raise ValueError(f"{p.name}: an element is stored twice")
    p.written[at] = True
    values = _as_bfloat16(_array(value)) if p.bf16 else _array(value)
    p.memory[at] = _np.broadcast_to(values.astype(p.memory.dtype), p.at.shape)[m]


def _atomic(p, value, mask, join, kinds):
    m = _mask_for(p, mask)
    at = p.at[m]
    _inside(p, at, "atomic operation on")
    if p.bf16 or p.memory.dtype.kind not in kinds or p.memory.dtype.itemsize < 4:
        raise TypeError(f"an atomic operation on {p.memory.dtype}")
    if p.written[at].any():
        raise ValueError(f"{p.name}: an atomic operation where the same launch stores")
    # Backwards: a device keeps no order.
    join.at(p.memory, at[::-1], _np.broadcast_to(_array(value).astype(p.memory.dtype), p.at.shape)[m][::-1])


def atomic_add(p, value, mask=None, sem=None): _atomic(p, value, mask, _np.add, "iuf")
def atomic_max(p, value, mask=None, sem=None): _atomic(p, value, mask, _np.maximum, "iu")
def atomic_min(p, value, mask=None, sem=None): _atomic(p, value, mask, _np.minimum, "iu")


_program = [0, 0, 0]
_programs = [1, 1, 1]


def program_id(axis): return tensor(_np.array(_program[axis], "i4"))
def num_programs(axis): return tensor(_np.array(_programs[axis], "i4"))


def _launch(fn, grid, args, meta):
    import torch
    grid = tuple(int(g) for g in grid) + (1,) * (3 - len(grid))
    if grid[1] > 65535 or grid[2] > 65535 or grid[0] >= _most_programs or _py.min(grid) < 1:
        raise ValueError(f"a grid of {grid}")
    ready, memories, copies = [], {}, []
    for i, x in enumerate(args):
        if isinstance(x, torch.Tensor):
            if not x.is_contiguous():
                raise ValueError(f"argument {i} is not contiguous")
            key = x.data_ptr()
            if key not in memories:
                bf16 = x.dtype == torch.bfloat16
                memory = (x.detach().float() if bf16 else x.detach()).numpy().reshape(-1)
                memories[key] = (memory, _np.zeros(memory.size, "?"), bf16)
                if bf16:
                    copies.append((x, memory))
            ready.append(pointer(fn.__code__.co_varnames[i], *memories[key]))
        else:
            ready.append(x)
    _programs[:] = grid
    for z in _py.range(grid[2]):
        for y in _py.range(grid[1]):
            for x in _py.range(grid[0]):
                _program[:] = (x, y, z)
                fn(*ready, **meta)
    for x, memory in copies:
        x.detach().copy_(torch.from_numpy(memory).reshape(x.shape))


def check_carried(before, after):
    for name, old in before.items():
        new = after[name]
        if not isinstance(old, tensor) or not isinstance(new, tensor) or old is new:
            continue
        if old.a.dtype != new.a.dtype or old.a.shape != new.a.shape:
            raise TypeError(f"a loop changes {name} from {old.a.dtype}{old.a.shape} to {new.a.dtype}{new.a.shape}")


def arange(start, end):
    n = end - start
    if n <= 0 or n & (n - 1):
        raise ValueError(f"arange of {n}: not a power of two")
    return tensor(_np.arange(start, end, dtype="i4"))


def static_range(*args): return _py.range(*args)


def _indices(*args):
    """range() of a kernel: its index is an integer of the device, of 64 bits only where an end is."""
    ends = [_array(a) for a in args]
    kind = _np.result_type(*ends)
    for i in _py.range(*(int(e) for e in ends)):
        yield tensor(_np.array(i, kind))


def range(*args, num_stages=None, **rest): return _indices(*args)


def full(shape, value, t):
    return tensor(_np.full(tuple(shape), _array(value).astype(t.np), t.np))


def zeros(shape, dtype): return full(shape, 0, dtype)
def cdiv(a, b): return (a + b - 1) // b


def broadcast_to(x, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    a = _array(x)
    if a.shape and len(a.shape) != len(shape):
        raise TypeError(f"{a.shape} to {shape}")
    return tensor(_np.broadcast_to(a, tuple(shape)))


def reshape(x, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    return tensor(x.a.reshape(tuple(shape)))


def trans(x, *order): return tensor(_np.transpose(x.a, order or None), x.bf16)
def expand_dims(x, axis): return tensor(_np.expand_dims(x.a, axis))


def cast(x, t):
    with _np.errstate(all="ignore"):
        a = _array(x)
        if t is bfloat16:
            return tensor(_as_bfloat16(a), True)
        return tensor(a != 0 if t is int1 else a.astype(t.np))


def where(condition, x, y):
    a, b = _pair(x, y)
    c = _array(condition)
    if c.dtype != _np.dtype("?"):
        raise TypeError("where on something that is not boolean")
    return tensor(_np.where(c, a, b))


def _extreme(x, y, propagate_nan, plain, nan):
    a, b = _pair(x, y)
    return tensor(nan(a, b) if propagate_nan == PropagateNan.ALL or a.dtype.kind != "f" else plain(a, b))


def maximum(x, y, propagate_nan=PropagateNan.NONE): return _extreme(x, y, propagate_nan, _np.fmax, _np.maximum)
def minimum(x, y, propagate_nan=PropagateNan.NONE): return _extreme(x, y, propagate_nan, _np.fmin, _np.minimum)


def _summable(a): return a.astype("i4") if a.dtype.kind in "?iu" and a.dtype.itemsize < 4 else a


def sum(x, axis=None, keep_dims=False):
    a = _summable(x.a)
    return tensor(a.sum(axis=axis, dtype=a.dtype, keepdims=keep_dims))


def max(x, axis=None, keep_dims=False): return tensor(_np.fmax.reduce(x.a, axis=axis, keepdims=keep_dims))
def min(x, axis=None, keep_dims=False): return tensor(_np.fmin.reduce(x.a, axis=axis, keepdims=keep_dims))


def reduce(inputs, axis, combine_fn, keep_dims=False):
    several = isinstance(inputs, tuple)
    parts = [x.a for x in inputs] if several else [inputs.a]
    if len({p.shape for p in parts}) != 1:
        raise TypeError(f"a reduction of shapes {[p.shape for p in parts]}")
    # By halves, as a GPU does it: the order of the elements must not matter.
    while parts[0].shape[axis] > 1:
        half = parts[0].shape[axis] // 2
        low = [tensor(_np.take(p, _np.arange(half), axis)) for p in parts]
        high = [tensor(_np.take(p, _np.arange(half, 2 * half), axis)) for p in parts]
        out = combine_fn(*low, *high)
        out = out if several else (out,)
        for p, o in zip(parts, out):
            if p.dtype != o.a.dtype:
                raise TypeError(f"combine_fn changes {p.dtype} to {o.a.dtype}")
        parts = [o.a for o in out]
    done = [tensor(p if keep_dims else _np.squeeze(p, axis)) for p in parts]
    return tuple(done) if several else done[0]


def cumsum(x, axis=0, reverse=False):
    a = _summable(x.a)
    return tensor(_np.cumsum(a, axis=axis, dtype=a.dtype))


def cumprod(x, axis=0, reverse=False):
    a = _summable(x.a)
    return tensor(_np.cumprod(a, axis=axis, dtype=a.dtype))


def associative_scan(inputs, axis, combine_fn, reverse=False):
    """By doubling, as a GPU does it: each element joins what lies 1, 2, 4, .. before it."""
    several = isinstance(inputs, tuple)
    parts = [x.a for x in inputs] if several else [inputs.a]
    if len({p.shape for p in parts}) != 1:
        raise TypeError(f"a scan of shapes {[p.shape for p in parts]}")
    step, extent = 1, parts[0].shape[axis]
    while step < extent:
        early, late = _np.arange(extent - step), _np.arange(step, extent)
        # combine_fn takes tiles whose extents are powers of two: all of them, of which the first `step` are not used
        before = [tensor(_np.concatenate([_np.take(p, _np.arange(step), axis), _np.take(p, early, axis)], axis)) for p in parts]
        out = combine_fn(*before, *[tensor(p) for p in parts])
        out = out if several else (out,)
        for p, o in zip(parts, out):
            if p.dtype != o.a.dtype:
                raise TypeError(f"combine_fn changes {p.dtype} to {o.a.dtype}")
        parts = [_np.concatenate([_np.take(p, _np.arange(step), axis), _np.take(o.a, late, axis)], axis) for p, o in zip(parts, out)]
        step *= 2
    done = [tensor(p) for p in parts]
    return tuple(done) if several else done[0]


def dot(a, b, acc=None, input_precision=None, allow_tf32=None, out_dtype=float32):
    if a.a.ndim != 2 or b.a.ndim != 2 or a.a.shape[1] != b.a.shape[0]:
        raise TypeError(f"dot of {a.a.shape} and {b.a.shape}")
    if _py.min(a.a.shape + b.a.shape) < 16:
        raise ValueError(f"dot of {a.a.shape} and {b.a.shape}: extents below 16")
    if a.a.dtype != b.a.dtype or a.bf16 != b.bf16:
        raise TypeError("dot of two types")
    if a.half:  # exact products, added up in float32
        a, b, input_precision = tensor(a.a.astype("f4")), tensor(b.a.astype("f4")), None
    if input_precision not in (None, "ieee", "tf32x3", "tf32"):
        raise ValueError(input_precision)
    if input_precision == "tf32":  # tensor cores do not see the last 13 bits
        a, b = (tensor((_np.ascontiguousarray(x.a).view("i4") & -8192).view("f4")) for x in (a, b))
    product = tensor((a.a @ b.a).astype("f4"))
    return product if acc is None else acc + product


def _function(f):
    def on_tensor(x):
        if not isinstance(x, tensor) or x.a.dtype.kind != "f":
            raise TypeError(f"{f} of {x!r}")
        with _np.errstate(all="ignore"):
            return tensor(f(x.a).astype(x.a.dtype))
    return on_tensor


exp, exp2, log, log2 = _function(_np.exp), _function(_np.exp2), _function(_np.log), _function(_np.log2)
sqrt, sin, cos, floor, ceil = _function(_np.sqrt), _function(_np.sin), _function(_np.cos), _function(_np.floor), _function(_np.ceil)
rsqrt = _function(lambda a: 1 / _np.sqrt(a))
erf = _function(_np.vectorize(_math.erf, otypes=["f8"]))
sqrt_rn = sqrt


def abs(x): return tensor(_np.abs(x.a))
def fma(x, y, z): return x * y + z
def div_rn(x, y): return x / y
def multiple_of(x, n): return x
def max_contiguous(x, n): return x
def static_assert(condition, text=""): assert condition, text


from . import extra  # noqa: E402
