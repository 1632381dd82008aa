"""A drop-in of a model that keeps things where no dictionary of a layer's shows a change: `watched.py RESULT_FOLDER`. The task is task_watched.py. Each case changes one thing after the first
call; the gradients are those of all weights, wherever they are kept, and of the model as it was in forward()."""
import copy
import sys
import warnings

import torch

torch.set_num_threads(1)
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from model_new import ModelNew, _reference

task = ModelNew._pragma_task
x = torch.randn(16, 64)


def pair(*args):
    torch.manual_seed(3)
    new, old = ModelNew(64, *args), _reference.Model(64, *args)
    old.load_state_dict(new.state_dict())
    return new, old


def near(a, b, what=None):
    assert torch.allclose(a, b, rtol=1e-4, atol=1e-4), (what, (a - b).abs().max())


class Same(torch.nn.Module):  # another one of that name
    def forward(self, y):
        return y * 2.0


def other_weight(model):
    torch.manual_seed(5)
    model.linear.weight = torch.nn.Parameter(torch.randn(64, 64))


changes = {
    "a slot": lambda m: setattr(m.slotted, "gain", 9.0),
    "a field of what is called": lambda m: setattr(m.times, "factor", 9.0),
    "a field behind a method": lambda m: setattr(m.bound.__self__, "factor", 9.0),
    "a field of an object in a list": lambda m: setattr(m.configs[1], "gain", 9.0),
    "an object in a list": lambda m: m.configs.__setitem__(0, _reference.Config(9.0)),
    "a field of an object in objects": lambda m: setattr(m.deep.a.b.c.d, "gain", 9.0),
    "a tensor in a list, in place": lambda m: m.constants["ones"][0].mul_(2),
    "a tensor in a list": lambda m: m.constants["ones"].__setitem__(0, torch.full((64,), 9.0)),
    "a layer that no state_dict has": lambda m: setattr(m.hidden[0], "threshold", 20.0),
    "the order of layers": lambda m: m.order.reverse(),
    "another function of that name": lambda m: setattr(m, "keep", lambda y: y * 9.0),
    "another function in that line": lambda m: setattr(m, "keep", _reference.ALSO),
    "another class of that name": lambda m: setattr(m, "same", Same()),
    "a layer that was none": lambda m: setattr(m, "more", torch.nn.Tanh()),
    "a tensor that forward() asks for": lambda m: setattr(m, "mask", torch.zeros(64)),
    "a buffer that forward() asks for": lambda m: m.register_buffer("mask", torch.zeros(64)),
    "one of two names of a buffer": lambda m: setattr(m, "again", torch.full((64,), 9.0)),
    "a weight that is in other places, too": other_weight,
}
with torch.no_grad():
    for what, change in changes.items():
        new, old = pair()
        for _ in range(2):
            near(new(x), old(x), what)
        assert new.stats()["hits"] == 2, (what, task.difference(new))
        before = old(x)
        change(new), change(old)
        near(new(x), old(x), what)
        assert new.stats()["hits"] == 2, what
        assert not torch.allclose(before, old(x)) or change is other_weight, what

    # What lies outside of the model: a class's attributes and methods, the file's globals.
    def patched(name, value, *places):
        new, old = pair()
        near(new(x), old(x))
        before = [place[name] if isinstance(place, dict) else vars(place).get(name) for place in places]
        put = lambda place, value: place.__setitem__(name, value) if isinstance(place, dict) else setattr(place, name, value)
        for place in places:
            put(place, value)
        near(new(x), old(x), name)
        assert new.stats()["hits"] == 1, name
        for place, one in zip(places, before):
            delattr(place, name) if one is None else put(place, one)
        near(new(x), old(x), name)
        assert pair()[0](x) is not None and pair()[0]._pragma_task is task

    patched("one", 9.0, ModelNew, _reference.Model)
    patched("scaled", lambda self, y: y * 9.0, ModelNew, _reference.Model)
    patched("scaled", lambda self, y: y * 9.0, _reference.Model)
    patched("forward", lambda self, y: y * 9.0, _reference.Same)
    patched("forward", lambda self, y: y * 9.0, torch.nn.ReLU)
    patched("HALF", 9.0, vars(_reference))
    patched("TABLE", torch.full((64,), 9.0), vars(_reference))
    patched("plus", lambda y: y + 9.0, vars(_reference))
    new, old = pair(_reference.Slotted(9.0))
    near(new(x), old(x))
    assert new.stats()["hits"] == 0

# Gradients reach a weight in all its places; what is done between forward() and backward() changes none.
spoiled = {"nothing": lambda m: None, "a hook": lambda m: m.linear.register_forward_hook(lambda *a: a[2] * 0), "what is called": lambda m: setattr(m.times, "factor", 9.0),
           "a list": lambda m: setattr(m.configs[1], "gain", 9.0), "a slot": lambda m: setattr(m.slotted, "gain", 9.0)}
for what, spoil in spoiled.items():
    new, old = pair()
    for model in (new, old):
        result = model(x)
        spoil(model)
        result.square().sum().backward()
    assert new.stats()["hits"] == 1
    for a, b in zip(new.parameters(), old.parameters()):
        assert a.grad is not None and torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-2 * float(b.grad.abs().max())), what
sys.stderr.write("ok\n")
