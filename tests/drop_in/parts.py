"""A drop-in of parts as programs use it: `parts.py RESULT_FOLDER`. The task is that of tests/integration/parts_test.cpp. Knows nothing of PRAGMA."""
import copy
import importlib.util
import io
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

from asserts import KEEPS_KERNELS

torch.set_num_threads(1)


def load(folder, name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def same(got, expected):
    return len(got) == len(expected) and all(torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5) for a, b in zip(got, expected))


folder = sys.argv[1]
task, new = load(folder, "task_reference"), load(folder, "model_new")
torch.manual_seed(7)
model = task.Model(*task.get_init_inputs())
drop_in = new.ModelNew(*task.get_init_inputs())
drop_in.load_state_dict(model.state_dict())
inputs = task.get_inputs()


def agree(what, *args, one=None):
    with torch.no_grad():
        assert same((one or drop_in)(*args), model(*args)), what


def hits():
    return drop_in.stats()["hits"]


agree("a plain call", *inputs)
assert hits() == 1, drop_in.stats()
assert all(part["hits"] == 1 and not part["fallbacks"] for part in drop_in.stats()["parts"]), drop_in.stats()
assert "topk" in drop_in.stats()["launches"]
agree("after eval()", *inputs, one=drop_in.eval())

# Parameters are the model's own: changed in place, and replaced by others.
with torch.no_grad():
    for one in (model, drop_in):
        one.gate.weight.mul_(0.5)
agree("changed parameters", *inputs)
other = torch.randn_like(model.gate.weight)
model.gate.weight, drop_in.gate.weight = torch.nn.Parameter(other.clone()), torch.nn.Parameter(other.clone())
agree("replaced parameters", *inputs)
assert hits() == 4 and not drop_in.stats()["fallbacks"], drop_in.stats()

# What the kernels were not made for is Torch's.
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    agree("another batch", *[torch.cat([v, v]) for v in inputs])
    assert drop_in.stats()["fallbacks"] == {"shape": 1} and len(said) == 1, (drop_in.stats(), said)
with torch.no_grad():
    assert same(drop_in(*[v.clone().t().contiguous().t() for v in inputs]), model(*inputs)), "strides"
loss = lambda one: one(*inputs)[0].square().sum()
model.zero_grad(), drop_in.zero_grad()
loss(model).backward()
loss(drop_in).backward()
for a, b in zip(model.parameters(), drop_in.parameters()):
    assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-5), "gradients"

agree("a copy", *inputs, one=copy.deepcopy(drop_in))
memory = io.BytesIO()
torch.save(drop_in.state_dict(), memory)
memory.seek(0)
again = new.ModelNew(*task.get_init_inputs())
again.load_state_dict(torch.load(memory))
agree("a loaded state", *inputs, one=again)

# Several threads at once.
sets = [task.get_inputs() for _ in range(4)]
with torch.no_grad():
    expected = [model(*s) for s in sets]
wrong = []


def calls(i):
    for _ in range(100):
        with torch.no_grad():
            if not same(drop_in(*sets[i]), expected[i]):
                wrong.append(i)


with ThreadPoolExecutor(4) as pool:  # an exception in one of them is one here
    list(pool.map(calls, range(4)))
assert not wrong, "%d of 400 results of four threads are wrong" % len(wrong)

# In a compiled program the parts and what is between them are one operator.
if hasattr(torch.library, "custom_op"):
    compiled = torch.compile(again, fullgraph=True, backend="aot_eager")
    again.load_state_dict(model.state_dict())
    agree("a compiled program", *inputs, one=compiled)
    with torch.no_grad():
        for one in (model, again):
            one.gate.weight.mul_(0.5)
    agree("a compiled program, with changed parameters", *inputs, one=compiled)
    model.zero_grad(), again.zero_grad()
    loss(model).backward()
    loss(compiled).backward()
    for a, b in zip(model.parameters(), again.parameters()):
        assert torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-5), "gradients of a compiled program"
    assert again.stats()["compiled"] == (3 if KEEPS_KERNELS else 0), again.stats()
print("ok")
