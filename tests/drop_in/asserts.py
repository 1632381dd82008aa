"""What programs.py asserts with."""
import torch

FEATURES = 64
KEEPS_KERNELS = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 7)  # in compiled programs, of models with layers: docs/drop_in.md


def data(rows=16, features=FEATURES, **also):
    return torch.randn(rows, features, **also)


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b), (a.dtype, b.dtype, a.shape, b.shape, (a - b).abs().max())


def near(a, b):
    assert a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-5), (a - b).abs().max()


def hits(new, count):
    stats = new.stats()
    assert stats["hits"] == count and not stats["fallbacks"], stats


def fell(new, cause):
    assert cause in new.stats()["fallbacks"], new.stats()


def raises(kind, function):
    try:
        function()
    except kind as e:
        return str(e)
    raise AssertionError("nothing was raised")
