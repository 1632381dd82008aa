"""A drop-in of a model that keeps more than its state: `kept.py RESULT_FOLDER`. The task is task_kept.py. Each case changes one thing, in the eager drop-in and in a compiled one."""
import copy
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings

import torch

from asserts import KEEPS_KERNELS

torch.set_num_threads(1)
warnings.simplefilter("ignore")
folder = sys.argv[1]
sys.path.insert(0, folder)
import model_new
from model_new import ModelNew, _reference

task = ModelNew._pragma_task
x = torch.randn(16, 64)


def pair(*args, **kwargs):
    torch.manual_seed(3)
    new, old = ModelNew(64, *args, **kwargs), _reference.Model(64, *args, **kwargs)
    old.load_state_dict(new.state_dict())
    return new, old


def near(a, b, what=None):
    assert type(a) is type(b) is tuple and len(a) == len(b) == 1, (type(a), type(b))
    assert torch.allclose(a[0], b[0], rtol=1e-4, atol=1e-4), (what, (a[0] - b[0]).abs().max())


def eager(new, old, hits, *args, **kwargs):
    before = new.stats()["hits"]
    near(new(x, *args, **kwargs), old(x, *args, **kwargs))
    assert new.stats()["hits"] == before + hits, (new.stats(), task.difference(new))


def in_both(change, args=(), **kwargs):
    """The kernel before `change`, Torch after it: called by itself and in a compiled program."""
    with torch.no_grad():
        new, old = pair(*args, **kwargs)
        eager(new, old, 1), eager(new, old, 1)
        change(new), change(old)
        eager(new, old, 0), eager(new, old, 0)
        if task.operator is None or not KEEPS_KERNELS:
            return
        new, old = pair(*args, **kwargs)
        torch._dynamo.reset()  # else the programs of earlier cases count against its limit
        program = torch.compile(new, fullgraph=True, backend="aot_eager")
        for calls in (1, 0):
            before = task.operator.calls()
            near(program(x), old(x), change)
            assert task.operator.calls() == before + calls, (change, calls)
            if calls:
                change(new), change(old)


def a_field_of_an_object(model):
    model.config.gain = 1.0


def another_object(model):
    model.config = _reference.Config(1.0)


def a_member_of_an_enumeration(model):
    model.kind = _reference.Kind.ONCE


def a_range(model):
    model.steps = range(2)


def a_partial(model):
    model.times = _reference.functools.partial(_reference.times, 1.0)


def a_buffer_that_was_none(model):
    model.mask = torch.zeros(64)


def a_parameter_that_was_none(model):
    model.again.more = torch.nn.Parameter(torch.ones(64))


def a_method_of_a_layer(model):
    model.again.forward = lambda y: y * 2


def another_tensor_in_a_list(model):
    model.weights = [torch.ones(64, 64)]


for change in (a_field_of_an_object, another_object, a_member_of_an_enumeration, a_range, a_partial, a_buffer_that_was_none, a_parameter_that_was_none, a_method_of_a_layer,
               another_tensor_in_a_list):
    in_both(change)

with torch.no_grad():
    for args in ((_reference.Config(1.0),), (None, _reference.Kind.ONCE)):
        new, old = pair(*args)
        eager(new, old, 0)
    new, old = pair(graph=1)  # Model's argument, though the drop-in has one of that name for others
    assert new.graph == 1
    eager(new, old, 0)
    new, old = pair()
    eager(new, old, 1, flip=False)
    eager(new, old, 0, flip=True)
    new, old = pair()
    new(x)
    for model in (new, old):
        model.numbers["one"] = 2.0
    eager(new, old, 0)
    _reference.HALF = 2.0
    new, old = pair()
    eager(new, old, 0)
    _reference.HALF = 0.5

    class Twice(ModelNew):
        def forward(self, y):
            return (super().forward(y)[0] * 2,)

    class Other(ModelNew):
        def scaled(self, y):
            return y

    torch.manual_seed(3)
    twice, other, plain = Twice(64), Other(64), _reference.Model(64)
    for one in (twice, other):
        one.load_state_dict(plain.state_dict())
    for _ in range(3):
        near(twice(x), (plain(x)[0] * 2,))
    assert twice.stats()["hits"] == 3 and other.stats()["hits"] == 0
    plain.scaled = lambda y: y
    near(other(x), plain(x))

    new, old = pair()
    new(x)
    before = ModelNew.forward
    ModelNew.forward = lambda self, y: (before(self, y)[0] * 2,)
    near(new(x), (old(x)[0] * 2,))
    ModelNew.forward = before

# Gradients are those of the model as it was in forward(), whatever becomes of it until backward(), and reach a weight that is in a list as well.
for spoil in (lambda m: None, lambda m: m.eval(), lambda m: setattr(m.config, "gain", 9.0), lambda m: setattr(m, "kind", _reference.Kind.ONCE), lambda m: m.numbers.update(one=7.0)):
    new, old = pair()
    results = [model(x)[0] for model in (new, old)]
    spoil(new), spoil(old)
    for result in results:
        with torch.autocast("cpu"):
            pass
        result.square().sum().backward()
    assert new.stats()["hits"] == 1
    for a, b in zip(new.parameters(), old.parameters()):
        assert a.grad is not None and torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-2), (a.grad - b.grad).abs().max()
new, old = pair()
result = new(x)[0]
with torch.autocast("cpu"):
    result.square().sum().backward()
old(x)[0].square().sum().backward()
for a, b in zip(new.parameters(), old.parameters()):
    assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-2), (a.grad - b.grad).abs().max()

if task.operator is not None:  # what is done to one model changes nothing for another
    new, old = pair()
    new.config.gain, new.numbers["one"] = 9.0, 7.0
    other, old = pair()
    program = torch.compile(other, fullgraph=True, backend="aot_eager")
    for one in (program, old):
        one(x)[0].square().sum().backward()
    for a, b in zip(other.parameters(), old.parameters()):
        assert torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-2), (a.grad - b.grad).abs().max()

# A result that is written anew at the same place while the program runs.
with tempfile.TemporaryDirectory() as place, torch.no_grad():
    at = os.path.join(place, "result")
    answers = []
    for factor in (1.0, 3.0):
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(folder, at)
        shutil.rmtree(os.path.join(at, "built"))
        os.mkdir(os.path.join(at, "built"))
        shutil.copy(os.path.join(folder, "built", "pragma_call.abi3.so"), os.path.join(at, "built"))
        with open(os.path.join(at, "kernel.cpp")) as f:
            source = f.read()
        with open(os.path.join(at, "kernel.cpp"), "w") as f:
            f.write("#define FACTOR %sf\n" % factor + source.replace("+ 0.5f", "+ 0.5f * FACTOR"))
        assert "FACTOR)" in source.replace("+ 0.5f", "+ 0.5f * FACTOR)") and "0.5f" in source
        native = task.native
        settings = dict(task.settings)
        os.rename(native.kernel_object(at, settings), os.path.join(at, "built", "kernel.so"))
        spec = importlib.util.spec_from_file_location("again", os.path.join(at, "model_new.py"))
        again = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(again)
        again.ModelNew._pragma_task.native.kernel_object = lambda *_: os.path.join(at, "built", "kernel.so")
        torch.manual_seed(3)
        answers.append(again.ModelNew(64)(x)[0])
    assert (answers[0] - answers[1]).abs().max() > 1, "the old object"

# A full disk keeps no kernel from being loaded.
def full(*_, **__):
    raise OSError(28, "No space left on device")


task.native.tempfile.TemporaryDirectory = full
assert task.native.loaded(task.call, task.native.kernel_object(folder, task.settings)) is not None
