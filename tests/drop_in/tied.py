"""A drop-in of a model whose layers share their weights: `tied.py RESULT_FOLDER`. The task is task_tied.py."""
import copy
import sys
import warnings

import torch

from asserts import KEEPS_KERNELS

torch.set_num_threads(1)
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from model_new import ModelNew, _reference


def pair():
    torch.manual_seed(3)
    new, old = ModelNew(), _reference.Model()
    old.load_state_dict(new.state_dict())
    return new, old


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-4)


def same_gradients(program, new, old, x):
    sides = []
    for one, model in ((program, new), (old, old)):
        model.zero_grad(set_to_none=True)
        result, above = one(x)
        result.square().sum().backward()
        sides.append([result, above] + [p.grad for p in model.parameters()])
        assert program is new or not above.requires_grad
    assert all((a is None) == (b is None) and (a is None or close(a, b)) for a, b in zip(*sides)), sides
    assert sides[0][-1] is None or sides[0][-2] is None, "a gradient of what no result depends on"


x = torch.randn(8, 32)
new, old = pair()
same_gradients(new, new, old, x)
hits = new.stats()["hits"]
assert hits == 1, new.stats()
for model in (new, old):  # both places at once: still the same tensor
    model.first.weight = model.second.weight = torch.nn.Parameter(model.first.weight * 0.5)
with torch.no_grad():
    assert close(copy.deepcopy(new)(x)[0], old(x)[0]) and close(new(x)[0], old(x)[0]) and new.stats()["hits"] == hits + 1
    for model in (new, old):
        model.second.weight = torch.nn.Parameter(model.first.weight * 2)
    assert torch.equal(new(x)[0], old(x)[0]) and new.stats()["fallbacks"] == {"ties": 1}, new.stats()

if KEEPS_KERNELS:
    new, old = pair()
    program = torch.compile(new, fullgraph=True)
    with torch.no_grad():
        assert close(program(x)[0], old(x)[0])
    same_gradients(program, new, old, x)
    assert new.stats()["compiled"] == 2
    with torch.no_grad():
        for model in (new, old):
            model.second.weight = torch.nn.Parameter(model.first.weight * 2)
        assert close(program(x)[0], old(x)[0]) and new.stats()["compiled"] == 2
