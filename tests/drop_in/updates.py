"""A drop-in whose forward() updates buffers, as programs use it: `updates.py RESULT_FOLDER`. The task is task_norm.py. Knows nothing of PRAGMA."""
import functools
import importlib.util
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

from asserts import KEEPS_KERNELS

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


def load(folder, name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


folder = sys.argv[1]
task, new = load(folder, "task_reference"), load(folder, "model_new")
torch.manual_seed(7)
model = task.Model(*task.get_init_inputs())


def made(**options):
    drop_in = new.ModelNew(*task.get_init_inputs(), **options)
    drop_in.load_state_dict(model.state_dict())
    return drop_in


def close(a, b):
    return torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5)


def same_buffers(one):
    return all(close(a, b) for a, b in zip(one.state_dict().values(), model.state_dict().values()))


drop_in, keeps = made(strict=True), made(strict=True, keep_buffers=True)
first = {name: value.clone() for name, value in model.state_dict().items()}
with torch.no_grad():
    for _ in range(5):
        inputs = task.get_inputs()
        expected = model(*inputs)
        for one in (drop_in, keeps):
            got = one(*inputs)
            assert isinstance(got, torch.Tensor) and close(got, expected)
        assert same_buffers(drop_in), "the buffers are not Model's"
assert not same_buffers(keeps) and all(torch.equal(value, first[name]) for name, value in keeps.state_dict().items()), "keep_buffers=True changed one"
assert drop_in.stats() == dict(drop_in.stats(), calls=5, hits=5, fallbacks={}), drop_in.stats()
assert int(drop_in.norm.num_batches_tracked) == 5

# On a device the parameters are not laid out anew for a buffer that each call updates.
loaded = getattr(getattr(new, "_kernel", None), "ModelNew", None)
if loaded is not None:
    assert loaded.loaded == 2, "laid out %d times for two models" % loaded.loaded

# Gradients, in a training loop of two steps.
sides = [(one, torch.optim.SGD(one.parameters(), lr=0.001)) for one in (model, drop_in)]
for _ in range(2):
    inputs = task.get_inputs()
    for one, optimizer in sides:
        optimizer.zero_grad()
        (one(*inputs) ** 2).sum().backward()
        optimizer.step()
    assert same_buffers(drop_in), "after a step"

# Buffers of other objects, and written by the program.
for one in (model, drop_in):
    one.norm.running_mean = torch.full((32,), 3.0)
    one.norm.running_var.fill_(0.5)
with torch.no_grad():
    inputs = task.get_inputs()
    assert close(drop_in(*inputs), model(*inputs)) and same_buffers(drop_in), "after buffers were replaced"
    with torch.inference_mode():
        inputs = task.get_inputs()
        assert close(drop_in(*inputs), model(*inputs))
    assert same_buffers(drop_in), "in inference mode"

# In evaluation mode the buffers decide, and nothing updates them.
lenient = made()
with torch.no_grad():
    inputs = task.get_inputs()
    assert torch.equal(lenient.eval()(*inputs), model.eval()(*inputs))
    assert same_buffers(lenient) and lenient.stats()["hits"] == 0
model.train()

# Two buffers in one memory: the second update of Model's sees the first one.
apart, shared = task.Model(*task.get_init_inputs()), made()
apart.load_state_dict(shared.state_dict())
with torch.no_grad():
    for step in range(2):
        inputs = task.get_inputs()
        assert close(shared(*inputs), apart(*inputs)) and all(close(a, b) for a, b in zip(shared.state_dict().values(), apart.state_dict().values())), "shared buffers"
        for one in (apart, shared):
            one.norm.running_mean = one.norm.running_var.view(-1)
assert shared.stats()["hits"] == 1 and shared.stats()["fallbacks"] == {"shared buffers": 1}, shared.stats()

# Threads, each with a model of its own.
def worker(one, failed):
    with torch.no_grad():
        before = one.norm.running_mean.clone()
        for _ in range(200):
            inputs = task.get_inputs()
            one(*inputs)
            before = 0.9 * before + 0.1 * inputs[0].mean(0)
        if not close(one.norm.running_mean, before):
            failed.append(one)


failed = []
with ThreadPoolExecutor(4) as pool:  # an exception in one of them is one here
    list(pool.map(worker, [made() for _ in range(4)], [failed] * 4))
assert not failed, "%d of 4 threads" % len(failed)

# A function that keeps a layer calls that one, whatever tensors a copy of the model has.
keeps_layers = drop_in._pragma_task.watch.keeps_layers
assert not keeps_layers(drop_in)
for keep in (lambda m: lambda x: m.norm(x), lambda m: functools.partial(m.norm.forward), lambda m: functools.partial(lambda layer, x: layer(x), m.norm), lambda m: lambda x, layer=m.norm: layer(x)):
    other = task.Model(*task.get_init_inputs())
    other.act = keep(other)
    assert keeps_layers(other)

# A script is Model's own, on this model's buffers; the model goes on with its kernel.
scripted_of = made(strict=True)
for holder in (scripted_of, torch.nn.Sequential(made(strict=True), torch.nn.ReLU())):
    one = holder[0] if holder is not scripted_of else holder
    scripted = torch.jit.script(holder)
    with torch.no_grad():
        one.load_state_dict(model.state_dict())
        inputs = task.get_inputs()
        assert close(scripted(*inputs), model(*inputs)) and same_buffers(one), "scripted"
own = scripted_of._pragma_task.reference.Model
own.__prepare_scriptable__ = lambda self: (type(self), self.norm)
assert scripted_of.__prepare_scriptable__() == (own, scripted_of.norm), "Model's own preparation was left out"
del own.__prepare_scriptable__
with torch.no_grad():
    assert close(scripted_of(*inputs), model(*inputs)) and scripted_of.stats()["hits"] == 1

if hasattr(torch.library, "custom_op"):
    compiled_of, before = made(strict=True), loaded and loaded.loaded
    compiled = torch.compile(compiled_of, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        for _ in range(3):
            inputs = task.get_inputs()
            assert close(compiled(*inputs), model(*inputs))
            assert same_buffers(compiled_of), "compiled"
    assert compiled_of.stats()["compiled"] == (3 if KEEPS_KERNELS else 0), compiled_of.stats()
    assert loaded is None or not KEEPS_KERNELS or loaded.loaded == before + 1, "laid out %d times for one model" % (loaded.loaded - before)
    for one in (model, compiled_of):  # gradients with buffers that are updated: the reference's
        one.zero_grad()
    (model(*inputs) ** 2).sum().backward(), (compiled(*inputs) ** 2).sum().backward()
    assert same_buffers(compiled_of) and compiled_of.stats()["compiled"] == (3 if KEEPS_KERNELS else 0)
    for a, b in zip(compiled_of.parameters(), model.parameters()):
        assert close(a.grad, b.grad)
    with torch.no_grad():
        exported = torch.export.export(made(strict=True), tuple(inputs)).module()
    model.zero_grad()
    sides = [one(*inputs) for one in (model, exported)]
    for result in sides:
        (result ** 2).sum().backward()
    assert close(*sides) and not any(buffer.requires_grad for buffer in exported.buffers())
    wanted = {name: p.grad for name, p in model.named_parameters()}
    assert all(close(p.grad, wanted[name]) for name, p in exported.named_parameters() if name in wanted)
