"""Launches by handle, with the processor as the device: `launches.py FOLDER LIBRARY`. FOLDER has the drop-in of task_gate.py with kernel_launched.py,
LIBRARY is launches.c built. Each case
runs in a process of its own; exits with an error where a promise of pragma_device.py does not hold."""
import contextlib
import ctypes
import os
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

folder, path = sys.argv[1:3]
sys.path.insert(0, folder)

import torch

torch.set_num_threads(1)
warnings.simplefilter("ignore")
import model_new

library = ctypes.CDLL(path)
library.count.restype = library.replays.restype = library.graphs.restype = ctypes.c_long
device, kernel = model_new._device, model_new._kernel


def address(name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


CONTEXT = 1


class Function:
    """As much of Triton's JITFunction as is looked at: its dispatcher runs the kernel as well, and counts."""
    runs = 0

    def __init__(self, name, *arguments):
        self.name, self.arg_names = name, list(arguments) + ["ROWS"]
        self.params = [types.SimpleNamespace(name=n, is_constexpr=n == "ROWS") for n in self.arg_names]
        self.metadata = types.SimpleNamespace(num_warps=4, shared=0, num_ctas=1)

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args, grid, warmup, **kwargs):
        Function.runs += 1
        library.use_context(ctypes.c_void_p(CONTEXT))  # as Triton's dispatcher does
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in args]
        array = (ctypes.c_void_p * len(args))(*[ctypes.addressof(p) for p in pointers])
        getattr(library, self.name)(grid[0], array)
        return types.SimpleNamespace(function=address(self.name), metadata=self.metadata)


class Processor:
    """The row of DRIVERS for it."""
    lanes, now, is_capturing, has_graphs = 32, 7, False, False

    usable = staticmethod(lambda: True)
    on = staticmethod(lambda index: contextlib.nullcontext())
    capturing = staticmethod(lambda: Processor.is_capturing)
    stream = staticmethod(lambda index: (lambda: Processor.now, (), Processor.now))
    current = staticmethod(lambda index: (lambda: 0, 0))
    start = staticmethod(lambda: tuple(map(address, ("start", "current_context", "use_context", "stream_capturing"))))
    context = staticmethod(lambda: CONTEXT)
    graphs = staticmethod(lambda: tuple(address("graph_" + name) for name in ("create", "add", "instantiate", "set", "launch", "end_replay", "end")) if Processor.has_graphs else None)
    empty = staticmethod(lambda tensor: (torch.empty, tuple(tensor.shape)))

    @staticmethod
    def capture(on):
        Processor.is_capturing = on
        library.capture(on)


device.JITFunction = Function
device.DRIVERS["cpu"] = Processor
model_new._settings["by_handle"] = True
kernel.product, kernel.finish = Function("product", "x", "w", "b", "y"), Function("finish", "y", "shift", "out")
kernel.between = lambda tensor: tensor


def pair():
    torch.manual_seed(1)
    new = model_new.ModelNew(64, strict=True)
    old = model_new._reference.Model(64)
    old.load_state_dict(new.state_dict())
    return new, old


def right(new, old, x=None, tolerance=1e-5):
    """Called once, with how many runs of the dispatcher and how many launches by handle."""
    x = torch.randn(16, 64) if x is None else x
    before = Function.runs, library.count()
    with torch.no_grad():
        assert torch.allclose(new(x, 2.0), old(x, 2.0), rtol=tolerance, atol=tolerance)
    found = Function.runs - before[0], library.count() - before[1]
    if found == BY_DISPATCHER:
        print("by the dispatcher:", new.stats()["launches"])
    return found


FIRST, AFTER, BY_DISPATCHER = (6, 2), (0, 2), (2, 0)  # the first: as it is, written down, compared


def by_handle():
    new, old = pair()
    assert right(new, old) == FIRST
    for _ in range(5):
        assert right(new, old) == AFTER
    assert new.stats()["hits"] == 6, new.stats()


def one_replay():
    """Where the driver has graphs both kernels start with one replay of the same graph, whatever the addresses are."""
    new, old = pair()
    right(new, old)
    kept = [torch.randn(16, 64) for _ in range(4)]
    for x in kept + kept:
        replays = library.replays()
        assert right(new, old, x) == AFTER and library.replays() == replays + 1
    assert library.graphs() == 1
    new.refresh()
    assert right(new, old) == FIRST and right(new, old) == AFTER and library.graphs() == 1, "the graph of before was not ended"
    del new
    import gc
    gc.collect()
    assert library.graphs() == 0


def parameters_change():
    new, old = pair()
    right(new, old)
    for change in (lambda m: m.linear.weight.mul_(2), lambda m: m.linear.bias.copy_(m.linear.weight[0]), lambda m: setattr(m, "shift", torch.full((64,), 9.0)),
                   lambda m: setattr(m.linear.bias, "data", m.linear.bias.data + 1), lambda m: m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})):
        with torch.no_grad():
            change(new), change(old)
        loads = kernel.loads
        assert right(new, old)[0] > 0 and kernel.loads == loads + 1
        assert right(new, old) == AFTER


def replace_weights(new, old, launches):
    """Memory that was freed and is another parameter's now is not taken for the one that was there. `launches()`: a right call's."""
    launches()
    for _ in range(10):
        for model in (new, old):
            for _ in range(2):
                model.linear.weight.data = model.linear.weight.data * 1.25
        assert launches()[0] > 0


def parameters_at_one_address():
    new, old = pair()
    replace_weights(new, old, lambda: right(new, old))


def parameters_of_inference_mode():
    """They have no version that could say that they are the same."""
    with torch.inference_mode():
        new, old = pair()
        for _ in range(3):
            right(new, old)
            for model in (new, old):
                model.linear.weight.mul_(2)


def parameters_change_unseen():
    """Behind Torch's version count: refresh() is what a program has to say then."""
    new, old = pair()
    right(new, old)
    for model in (new, old):
        model.linear.weight.data.mul_(2)
    new.refresh()
    assert right(new, old) == FIRST
    assert right(new, old) == AFTER and new.stats()["hits"] == 3


def streams():
    new, old = pair()
    right(new, old)
    Processor.now = 8
    assert right(new, old) == FIRST
    assert right(new, old) == AFTER
    Processor.now = 7
    assert right(new, old) == AFTER and right(new, old) == AFTER
    Processor.capture(True)
    for Processor.now in (9, 7):
        loads = kernel.loads
        assert right(new, old) == BY_DISPATCHER and kernel.loads == loads + 1, "launches of a capture are the module's own, and so is the layout of its parameters"
    Processor.capture(False)
    assert right(new, old) == AFTER


def alignment():
    """What was compiled for aligned inputs is not launched with others."""
    new, old = pair()
    right(new, old)
    inside = torch.randn(16 * 64 + 1)[1:].view(16, 64)
    assert inside.data_ptr() % 16
    assert right(new, old, inside) == FIRST
    assert right(new, old, inside) == AFTER and right(new, old) == AFTER


def task_of_the_made():
    """What pragma_built.py runs to have its kernels compiled is the task's own model and inputs."""
    fast, inputs = model_new._load("pragma_built").forward_of(model_new, "cpu")
    torch.manual_seed(1)
    old = model_new._reference.Model(*model_new._reference.get_init_inputs())
    with torch.no_grad():
        assert torch.allclose(fast(*inputs), old(*inputs), rtol=1e-5, atol=1e-5)


def not_written_down():
    """Work between the kernels that a plan would leave out: the dispatcher goes on, and the results stay right."""
    kernel.between = lambda tensor: tensor * 1.0
    new, old = pair()
    right(new, old)
    for _ in range(3):
        assert right(new, old) == BY_DISPATCHER


def sums_in_any_order():
    """Results that differ from run to run in their last places are launched by handle; what a plan leaves out is seen beside that, too."""
    library.be_uneven(1)
    new, old = pair()
    assert right(new, old) == (FIRST[0] + 2 * 4, FIRST[1])
    for _ in range(3):
        assert right(new, old) == AFTER
    kernel.between = lambda tensor: tensor * 1.00004
    new, old = pair()
    for _ in range(3):
        found = right(new, old, tolerance=1e-3)
    assert found == BY_DISPATCHER


def other_arguments():
    """A launch with something that is no tensor, or of a kernel with a cluster: not ours to repeat."""
    for about in ("num_ctas", "global_scratch_size"):
        setattr(kernel.product.metadata, about, 2)
        new, old = pair()
        right(new, old)
        assert right(new, old) == BY_DISPATCHER
        setattr(kernel.product.metadata, about, 1 if about == "num_ctas" else 0)


def shared_memory():
    """A result that is a part of another tensor is nothing that a call could allocate anew."""
    kernel.between = lambda tensor: tensor
    whole = torch.empty(32, 64)
    kernel.torch = types.SimpleNamespace(empty_like=lambda like: whole[16:] if whole is not None else None)
    new, old = pair()
    right(new, old)
    assert right(new, old) == BY_DISPATCHER
    assert "part of another tensor" in new.stats()["launches"]


def threads():
    new, old = pair()
    wrong = []

    def work(number):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(number))
        with torch.no_grad():
            wanted = old(x, 2.0)
            for _ in range(200):
                if not torch.allclose(new(x, 2.0), wanted, rtol=1e-5, atol=1e-5):
                    wrong.append(number)
                if number == 0:
                    new.linear.bias.add_(0)  # the plan is dropped and made again beneath the others

    with ThreadPoolExecutor(8) as pool:  # an exception in one of them is one here
        list(pool.map(work, range(8)))
    assert not wrong, len(wrong)


def many_results():
    """A network in training mode has the new values of three buffers for each of its batch norms."""
    new, old = pair()
    right(new, old)
    launcher, count = next(made[1] for made in new._pragma_session.calls.values()), 61
    launcher.settings = dict(launcher.settings, outputs=launcher.settings["outputs"] * count)

    def module(x, scale):
        out = [torch.empty_like(x) for _ in range(count)]
        for i, one in enumerate(out):
            kernel.finish[(len(x),)](out[i - 1] if i else x, launcher.fast.shift, one, ROWS=16)
        return tuple(out)
    module.shift = launcher.fast.shift
    launcher.fast = module
    x = torch.randn(16, 64) / 4.0 ** 61
    plan = launcher.written_down(Processor, (x, 2.0), [x], launcher.key_of(Processor, x.device, [x]))
    assert plan is not None, launcher.why_not
    runs = Function.runs
    given = launcher.call.launch((x,))
    assert Function.runs == runs and len(given) == count
    for wanted, one in zip(module(x, 2.0), given):
        assert torch.equal(wanted, one)


def threads_without_a_context():
    """A thread whose first word to the device is this model's."""
    new, old = pair()
    right(new, old)
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(right, new, old).result() == AFTER
        Processor.now = 8
        right(new, old)
        Processor.now = 7  # whose plan the next thread attaches again


def refused():
    new, old = pair()
    right(new, old)
    library.refuse_with(719)
    try:
        new(torch.randn(16, 64), 2.0)
    except RuntimeError as e:
        assert "719" in str(e) and " of 2" in str(e), e  # a replay names the first whose arguments are other ones
    else:
        raise AssertionError("a launch that failed was taken for a result")
    library.refuse_with(0)
    right(new, old)


def left_to_torch():
    """--allow-torch: forward() may do more than launch kernels."""
    model_new._settings["by_handle"] = False
    new, old = pair()
    for _ in range(3):
        assert right(new, old) == BY_DISPATCHER


def run_all(cases):
    """Each in a process of its own; exits with the names of those that failed."""
    failed = []
    for case, with_graphs in cases:
        Processor.has_graphs = with_graphs
        child = os.fork()
        if child == 0:
            code = 1
            try:
                case()
                code = 0
            finally:
                sys.stderr.flush()
                if code:
                    import traceback
                    traceback.print_exc()
                os._exit(code)
        if os.waitpid(child, 0)[1] != 0:
            failed.append(case.__name__ + (" (graphs)" if with_graphs else ""))
    sys.exit(", ".join(failed) or 0)


if __name__ == "__main__":
    every = (by_handle, task_of_the_made, parameters_change, parameters_at_one_address, parameters_of_inference_mode, parameters_change_unseen, streams, alignment, not_written_down, sums_in_any_order, other_arguments,
             shared_memory, many_results, threads, threads_without_a_context, refused, left_to_torch)
    run_all([(case, graphs) for case in every for graphs in (False, True)] + [(one_replay, True)])
