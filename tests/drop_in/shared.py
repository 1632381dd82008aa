"""Inputs that share memory: `shared.py RESULT_FOLDER`. The task adds twice its second input to the tanh of its first; that of `writes` does so after it doubled the first in place."""
import sys
import warnings

import torch

from asserts import KEEPS_KERNELS

torch.set_num_threads(1)
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from model_new import ModelNew, _reference

writes = "mul_" in open(_reference.__file__).read()
new, old = ModelNew(keep_buffers=writes), _reference.Model()
large = torch.randn(128, 64)
kinds = {"one tensor twice": lambda t: (t[:64], t[:64]), "a tensor and its transposed": lambda t: (t[:64], t[:64].t()), "two slices": lambda t: (t[:64], t[64:]),
         "slices that overlap": lambda t: (t[:64], t[32:96]), "slices of columns": lambda t: (t[:64], t.reshape(64, 128)[:, ::2])}
with torch.no_grad():
    for name, inputs in kinds.items():
        mine, its = (one(*inputs(large.clone())) for one in (new, old))
        assert torch.allclose(mine, its, rtol=1e-4, atol=1e-5), name
    said = new.stats()
    assert writes and said["hits"] == 0 or not writes and said["hits"] == 3 and said["fallbacks"] == {"strides": 2}, said
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    assert torch.allclose(new(x.clone(), y), old(x.clone(), y), rtol=1e-4, atol=1e-5) and new.stats()["hits"] == said["hits"] + 1, new.stats()
    plain, seen = ModelNew(), [x.clone(), x.clone()]  # whose inputs end as Model's do
    for _ in range(2):
        for one, own in zip((plain, old), seen):
            one(own, y)
        assert torch.equal(*seen) and plain.stats()["hits"] == (0 if writes else plain.stats()["calls"])
    if KEEPS_KERNELS:
        program = torch.compile(ModelNew(), backend="aot_eager")
        for name, inputs in kinds.items():
            mine, its = (one(*inputs(large.clone())) for one in (program, old))
            assert torch.allclose(mine, its, rtol=1e-4, atol=1e-5), "compiled: " + name
print("ok")
