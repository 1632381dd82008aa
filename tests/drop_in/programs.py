"""Programs that use a drop-in as any Torch program would, each attacking one promise: the drop-in of task_gate.py with kernel_gate.cpp. Run by
run_programs.py. An error where the promise does not hold; exit code 77 where this Torch has no such thing."""
import copy
import importlib
import inspect
import io
import os
import shutil
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

from asserts import FEATURES, data, fell, hits, near, raises, same


def pair(*args, **kwargs):
    torch.manual_seed(1)
    new = ModelNew(*(args or (FEATURES,)), **kwargs)
    old = Model(*(args or (FEATURES,)), **{k: v for k, v in kwargs.items() if k != "strict"})
    old.load_state_dict(new.state_dict())
    return new, old


def by_torch(new, old, cause, *args, **kwargs):
    """Torch's very bits, and counted."""
    before = new.stats()["hits"]
    same(new(*args, **kwargs), old(*args, **kwargs))
    fell(new, cause)
    assert new.stats()["hits"] == before


# -- the kernel ------------------------------------------------------------------------------------------------------------------------


def plain():
    new, old = pair(strict=True)
    x = data()
    with torch.no_grad():
        near(new(x, 2.0), old(x, 2.0))
        near(new(x, scale=2.0), old(x, 2.0))
        same(new(x=x, scale=2.0), new(x, 2.0))
    hits(new, 4)
    assert new.stats()["calls"] == 4 and "torch._dynamo" not in sys.modules  # whose import takes seconds
    assert inspect.signature(new.forward) == inspect.signature(old.forward)


def threads():
    new, _ = pair(strict=True)
    inputs = [data() for _ in range(8)]
    with torch.no_grad():
        right = [new(x, 2.0) for x in inputs]
    wrong = []

    def work(i):
        with torch.no_grad():
            for _ in range(1000):
                if not torch.equal(new(inputs[i], 2.0), right[i]):
                    wrong.append(i)

    with ThreadPoolExecutor(8) as pool:  # an exception in one of them is one here
        list(pool.map(work, range(8)))
    assert not wrong, "%d of 8000 results are wrong" % len(wrong)
    hits(new, 8008)


def views():
    new, old = pair(strict=True)
    whole = data(17)
    for first in (0, 1):
        x = whole.reshape(-1)[first:first + 16 * FEATURES].view(16, FEATURES)
        with torch.no_grad():
            near(new(x, 2.0), old(x, 2.0))
    hits(new, 2)


def parameters_change():
    new, old = pair(strict=True)
    x = data()
    with torch.no_grad():
        for change in (lambda m: m.linear.weight.mul_(2), lambda m: setattr(m.linear, "bias", torch.nn.Parameter(torch.full((FEATURES,), 3.0))),
                       lambda m: setattr(m.linear.weight, "data", m.linear.weight.data + 1), lambda m: setattr(m, "shift", torch.full((FEATURES,), 9.0)),
                       lambda m: setattr(m, "linear", copy.deepcopy(m.linear))):
            change(new), change(old)
            near(new(x, 2.0), old(x, 2.0))
        other = Model(FEATURES)
        new.load_state_dict(other.state_dict())
        near(new(x, 2.0), other(x, 2.0))
    hits(new, 6)


# -- guards: Torch's very bits -----------------------------------------------------------------------------------------------------------


def constructor():
    by_torch(*pair(FEATURES, 3.0), "module", data(), 2.0)
    by_torch(*pair(FEATURES, eps=0.25), "module", data(), 2.0)
    by_torch(*pair(FEATURES, steps=7), "module", data(), 2.0)  # known to a function only
    by_torch(*pair(128), "module", data(features=128), 2.0)


def constants():
    new, old = pair()
    for name, value in (("eps", 0.125), ("gain", 5.0)):
        before = getattr(new, name)
        setattr(new, name, value), setattr(old, name, value)
        by_torch(new, old, "module", data(), 2.0)
        setattr(new, name, before), setattr(old, name, before)
    new.widths.append(3)
    old.widths.append(3)
    by_torch(new, old, "module", data(), 2.0)
    new.widths.pop()
    with torch.no_grad():
        new(data(), 2.0)
    assert new.stats()["hits"] == 1


def other_module():
    new, old = pair()
    new.drop, old.drop = torch.nn.Identity(), torch.nn.Identity()
    by_torch(new, old, "module", data(), 2.0)
    new, old = pair()
    new.drop.forward = old.drop.forward = lambda x: x * 2
    by_torch(new, old, "module", data(), 2.0)


def fits(model, *args):
    """In a compiled program."""
    task = model._pragma_task
    return task.operators.fits(model, task, task.told(), args + (2.0,))


def training():
    """Torch's, but where forward() was seen to do the same in both modes; and where modules differ in their mode."""
    new, old = pair()
    by_torch(new.eval(), old.eval(), "module", data(), 2.0)
    x = data()
    with torch.no_grad():
        trained = new.train()(x, 2.0)
        new._pragma_task.made_for = dict(new._pragma_task.made_for, same_in=[False])
        assert torch.equal(new.eval()(x, 2.0), trained) and new.stats()["hits"] == 2, new.stats()
    assert fits(new, x)
    new.drop.train(), old.drop.train()
    assert not fits(new, x)
    by_torch(new, old, "module", data(), 2.0)


def shapes():
    new, old = pair()
    by_torch(new, old, "shape", data(3), 2.0)
    by_torch(new, old, "shape", data(1).reshape(FEATURES), 2.0)
    by_torch(new, old, "scalar", data(), 3.0)
    by_torch(new, old, "scalar", data(), 2)
    by_torch(new, old, "strides", data(FEATURES, 16).t(), 2.0)
    by_torch(new.double(), old.double(), "dtype", data(dtype=torch.float64), 2.0)
    assert raises(TypeError, lambda: new(data())) == raises(TypeError, lambda: old(data()))


def ambient():
    new, old = pair()
    x = data()
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            by_torch(new, old, "autocast", x, 2.0)
        torch.use_deterministic_algorithms(True)
        by_torch(new, old, "deterministic mode", x, 2.0)
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(2)
        by_torch(new, old, "number of threads", x, 2.0)
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        by_torch(new, old, "default dtype", x, 2.0)
        torch.set_default_dtype(torch.float32)
        new(x, 2.0)
    assert new.stats()["hits"] == 1


def subclass():
    class Mine(torch.Tensor):
        pass

    by_torch(*pair(), "type", data().as_subclass(Mine), 2.0)


def functorch():
    new, old = pair()
    if hasattr(torch, "func"):
        vmap, grad = torch.func.vmap, torch.func.grad
    else:
        from functorch import vmap, grad
    x = torch.randn(3, 16, FEATURES)
    with torch.no_grad():
        same(vmap(lambda v: new(v, 2.0))(x), vmap(lambda v: old(v, 2.0))(x))
    assert new.stats()["hits"] == 0, new.stats()
    same(grad(lambda v: new(v, 2.0).sum())(x[0]), grad(lambda v: old(v, 2.0).sum())(x[0]))


def forward_gradients():
    import torch.autograd.forward_ad as forward
    new, old = pair()
    x, tangent = data(), data()
    with torch.no_grad(), forward.dual_level():
        dual = forward.make_dual(x, tangent)
        same(forward.unpack_dual(new(dual, 2.0)).tangent, forward.unpack_dual(old(dual, 2.0)).tangent)
    assert new.stats()["hits"] == 0


def modes():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counts(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            Counts.seen += 1
            return function(*args, **(kwargs or {}))

    new, old = pair()
    with torch.no_grad(), Counts():
        same(new(data_x, 2.0), old(data_x, 2.0))
    fell(new, "dispatch mode")
    assert Counts.seen > 4


def hooks():
    new, old = pair()
    seen = []
    handle = new.linear.register_forward_hook(lambda *_: seen.append(1))
    by_torch(new, old, "hooks", data(), 2.0)
    assert seen
    handle.remove()
    new.register_forward_hook(lambda *_: seen.append(2))
    with torch.no_grad():
        new(data(), 2.0)
    assert seen == [1, 2] and new.stats()["hits"] == 1


# -- training ----------------------------------------------------------------------------------------------------------------------------


def train(program, new, old):
    """Five steps of both, the new one's by `program`, end at the same parameters."""
    steps = [torch.optim.SGD(m.parameters(), lr=1e-4) for m in (new, old)]
    for _ in range(5):
        x = data()
        for model, step in zip((program, old), steps):
            step.zero_grad()
            model(x, 2.0).mean().backward()
            step.step()
    for a, b in zip(new.parameters(), old.parameters()):
        near(a, b)


# -- what programs do with models -----------------------------------------------------------------------------------------------------------


def copies():
    new, old = pair(strict=True)
    x = data()
    with torch.no_grad():
        new(x, 2.0)
        for made in (copy.deepcopy(new), copy.copy(new)):
            near(made(x, 2.0), old(x, 2.0))
            hits(made, 1)
        other = copy.deepcopy(new)
        other.linear.weight.zero_()
        near(new(x, 2.0), old(x, 2.0))
        stream = io.BytesIO()
        torch.save(new, stream)
        stream.seek(0)
        loaded = torch.load(stream, weights_only=False) if "weights_only" in torch.load.__code__.co_varnames else torch.load(stream)
        near(loaded(x, 2.0), old(x, 2.0))
        hits(loaded, 1)
        assert list(new.state_dict()) == list(old.state_dict())
        replica = new._replicate_for_data_parallel()
        replica._parameters, replica.linear = {}, copy.deepcopy(new.linear)
        replica.linear.weight.zero_()
        assert not torch.equal(replica(x, 2.0), new(x, 2.0))


def freed():
    import gc
    import weakref
    new, _ = pair()
    with torch.no_grad():
        new(data(), 2.0)
    gone = weakref.ref(new)
    del new
    gc.collect()
    assert gone() is None, "a model that was called is never freed"


def jit_trace():
    new, old = pair()
    x = data()
    with torch.no_grad():
        new(x, 2.0)
        traced = torch.jit.trace(new, (x, torch.tensor(2.0)), check_trace=False)
        other = data()
        near(traced(other, torch.tensor(2.0)), old(other, 2.0))


def read_by_torch():
    """A graph that torch.fx makes of forward() is Model's, with this model's own tensors. (torch.jit.script: updates.py, whose Model can be scripted.)"""
    new, old = pair()
    x = data()
    with torch.no_grad():
        new(x, 2.0)
        graph = torch.fx.symbolic_trace(new)
        assert torch.equal(graph(x, 2.0), old(x, 2.0))
        new.linear.weight.mul_(2)
        old.linear.weight.mul_(2)
        assert torch.equal(graph(x, 2.0), old(x, 2.0)), "the graph has other tensors than the model"
        near(new(x, 2.0), old(x, 2.0))


def fork():
    new, old = pair(strict=True)
    x = data()
    with torch.no_grad():
        expected = new(x, 2.0)
        stop = threading.Event()

        def busy():
            with torch.no_grad():
                while not stop.is_set():
                    new(x, 2.0)

        worker = threading.Thread(target=busy)
        worker.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                with torch.no_grad():
                    os._exit(0 if torch.equal(new(x, 2.0), expected) else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        worker.join()


def spawned(model, x, queue):
    torch.set_num_threads(1)
    with torch.no_grad():
        queue.put(model(x, 2.0).tolist())
    queue.put(model.stats()["hits"])


def spawn():
    import multiprocessing
    new, old = pair(strict=True)
    x = data()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with torch.no_grad():
        expected = new(x, 2.0)
    model = copy.deepcopy(new)
    process = context.Process(target=spawned, args=(model, x, queue), daemon=True)
    process.start()
    got = torch.tensor(queue.get(timeout=60))
    same(got, expected)
    assert queue.get(timeout=120) == 1
    process.join()


def no_compiler():
    new, old = pair(strict=True)
    x = data()
    with torch.no_grad():
        near(new(x, 2.0), old(x, 2.0))
    hits(new, 1)


def strict():
    new, _ = pair(strict=True)
    text = raises(RuntimeError, lambda: new(data(3), 2.0))
    assert "another shape" in text and "[16, 64]" in text and "[3, 64]" in text, text


def warns_once():
    new, _ = pair()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            new(data(3), 2.0)
            new(data(4), 2.0)
        new.eval()(data(), 2.0)
    texts = [str(w.message) for w in seen]
    assert len(texts) == 2 and "shape" in texts[0] and "self.eval()" in texts[1], texts
    assert new.stats()["fallbacks"] == {"shape": 6, "module": 1}


def no_kernel():
    """Nothing fits and nothing can be built: Torch computes."""
    new, old = pair()
    by_torch(new, old, "kernel", data(), 2.0)


def device_parameters():
    """A module for a device gets its parameters when they change, and only then."""
    new, old = pair(strict=True)
    x = data()
    kernel = sys.modules[model_new._reference.__name__.replace("task_reference", "kernel")]
    with torch.no_grad():
        for _ in range(3):
            near(new(x, 2.0), old(x, 2.0))
        assert kernel.loads == 1, kernel.loads
        for change in (lambda m: m.linear.weight.mul_(2), lambda m: setattr(m.linear.bias, "data", m.linear.bias.data + 1),
                       lambda m: setattr(m, "shift", torch.full((FEATURES,), 9.0)), lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})):
            before = kernel.loads
            change(new), change(old)
            near(new(x, 2.0), old(x, 2.0))
            assert kernel.loads == before + 1
    hits(new, 7)


def built_anew():
    """The module that calls the kernel is built again where any file that it is made of is another one."""
    folder = os.path.dirname(model_new.__file__)
    task = ModelNew._pragma_task
    with tempfile.TemporaryDirectory() as copied:
        for name in os.listdir(folder):
            if name.endswith((".c", ".h")):
                shutil.copy(os.path.join(folder, name), copied)
        built = lambda: {name for name in os.listdir(copied) if name.endswith(".so")}
        sources = sorted(os.listdir(copied))
        assert len(sources) == 4, sources
        task.native.caller(copied)
        assert len(built()) == 1
        for count, name in enumerate(sources):
            with open(os.path.join(copied, name), "a") as f:
                f.write("/* newer */\n")
            task.native.caller(copied)
            assert len(built()) == count + 2, "an older build was taken for one with another " + name


def run(folder, case):
    """One program, from the import of its drop-in to its end."""
    global model_new, ModelNew, Model, data_x
    if case == "no_compiler":
        os.environ["PATH"] = "/nowhere"
    sys.path.insert(0, folder)
    import model_new
    from model_new import ModelNew
    Model = model_new._reference.Model
    data_x = data()
    of = importlib.import_module("gradient_programs")
    (globals().get(case) or getattr(of, case, None) or getattr(importlib.import_module("compiled_programs"), case))()
