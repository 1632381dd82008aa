"""Functions of the device's mathematics library, on NumPy."""
import math

import numpy as np

from .. import _function, _pair, tensor


def _slow(f):
    def safe(x):
        try:
            return f(x)
        except (ValueError, OverflowError):
            return math.nan if not math.isinf(x) else f(x) if f is math.erfc else math.inf
    return _function(np.vectorize(safe, otypes=["f8"]))


tanh, log1p, expm1, log10 = _function(np.tanh), _function(np.log1p), _function(np.expm1), _function(np.log10)
tan, asin, acos, atan = _function(np.tan), _function(np.arcsin), _function(np.arccos), _function(np.arctan)
sinh, cosh, asinh, acosh, atanh = _function(np.sinh), _function(np.cosh), _function(np.arcsinh), _function(np.arccosh), _function(np.arctanh)
rint, trunc = _function(np.rint), _function(np.trunc)
erfc, lgamma = _slow(math.erfc), _slow(math.lgamma)


def _two(f):
    def of(x, y):
        a, b = _pair(x, y)
        with np.errstate(all="ignore"):
            return tensor(f(a, b).astype(a.dtype))
    return of


pow, atan2, hypot, fmod = _two(np.power), _two(np.arctan2), _two(np.hypot), _two(np.fmod)
