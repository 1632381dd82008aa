"""How calls are timed as a program calls them: `called.py FOLDER`, where called_times.py is. A device of a few lines whose events are this process's clock."""
import os
import sys
import time
import types

import torch

sys.path.insert(0, sys.argv[1])
import called_times  # noqa: E402
import quick_processor  # noqa: E402


class OutOfMemoryError(RuntimeError):
    """By its name, as Torch's own."""


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


device = types.SimpleNamespace(kind="cuda", native=False, torch="cpu", wait=lambda: None, share=lambda: 1.0, api=types.SimpleNamespace(Event=Event, empty_cache=lambda: None))
seen = []


def side(seconds, fits=True):
    def call(x):
        seen.append(torch.is_grad_enabled())
        if not fits and torch.is_grad_enabled():
            raise OutOfMemoryError("what backward() needs")
        time.sleep(seconds)
        return x
    return call


torch.set_num_threads(1)
called_times.FLUSH = (4,)
x = torch.ones(4)
with torch.no_grad():
    found = called_times.measured(device, side(4e-3), side(1e-3), [x], 0.4)
    assert set(seen) == {True, False}  # KernelBench's evaluator records gradients, the loop does not
    assert [one["protocol"] for one in found["times"]] == ["warm caches, calls back to back", "KernelBench's cuda_event"], found
    assert all(len(one[name]) >= 8 for one in found["times"] for name in ("torch_seconds", "drop_in_seconds")), found
    assert [one["flushed"] for one in found["times"]] == [False, True], found
    del seen[:]
    slow = called_times.measured(device, side(0.15), side(0.05), [x], 0.1)["times"][0]
    assert len(slow["torch_seconds"]) == 3 and len(seen) < 40, (slow, len(seen))  # of what takes long there are fewer calls
    del seen[:]
    said = called_times.where_gradients_are_recorded(device, side(4e-3), side(1e-3), [x], 0.2)
    assert set(seen) == {True} and float(said.split()[-1][:-1]) > 0, said
    assert called_times.where_gradients_are_recorded(device, side(1e-3, False), side(1e-3), [x], 0.2).endswith("memory does not suffice")
    found = called_times.measured(device, side(4e-3, False), side(1e-3), [x], 0.4)
    assert found["times"][1]["protocol"] == "KernelBench's cuda_event under no_grad", found
    try:
        called_times.where_gradients_are_recorded(device, lambda x: 1 / 0, side(1e-3), [x], 0.2)
        raise AssertionError("another failure was taken for one of memory")
    except ZeroDivisionError:
        pass


class Alternating:
    """A host that is slow in each second turn."""
    turn = 0

    def __init__(self, wanted):
        assert wanted

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def settle(self):
        Alternating.turn += 1

    def was_quick(self):
        return Alternating.turn % 2 == 0


def timed(device, one, inputs, calls):
    return 1.0 if Alternating.turn % 2 == 0 else 3.0


sides, kind = {"a": None, "b": None}, called_times.QuickProcessor
called_times.QuickProcessor = Alternating
found = called_times.in_turns(timed, device, sides, [], 0.1)
assert set(found["a"]) == set(found["b"]) == {1.0} and len(found["a"]) == len(found["b"]), found
Alternating.was_quick = lambda self: False
found = called_times.in_turns(timed, device, sides, [], 0.1)
assert set(found["a"]) == {1.0, 3.0}, "a host that is never quick is timed as it is"
called_times.QuickProcessor = kind

here = os.sched_getaffinity(0)
if len(here) > 1:
    slow, spin = {min(here)}, quick_processor.spin
    quick_processor.spin = lambda: 2.0 if min(os.sched_getaffinity(0)) in slow else 1.0
    with quick_processor.QuickProcessor() as host:
        first = os.sched_getaffinity(0)
        assert len(first) == 1 and not first & slow and host.was_quick()
        slow = first  # another machine begins to use its core
        assert not host.was_quick()
        host.settle()
        assert not os.sched_getaffinity(0) & slow and host.was_quick()
        os.sched_setaffinity(0, slow)  # as a call could do, so that the other side is timed there
        host.settle()
        assert not os.sched_getaffinity(0) & slow
    assert os.sched_getaffinity(0) == here
    with quick_processor.QuickProcessor(False) as host:
        host.settle()
        assert os.sched_getaffinity(0) == here and host.was_quick()
    quick_processor.spin = spin
    assert 0 < spin() < 1
print("right")
