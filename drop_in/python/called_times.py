"""What a call takes, as a program calls a module: Model by itself, and Model and ModelNew in turns (docs/measuring.md). Used by check_drop_in.py."""
import functools
import statistics
import time

import torch

import baseline
from quick_processor import QuickProcessor

CLOCK = time.perf_counter  # before a module's code could change it
FLUSH = (32, 1024, 1024)  # of 8 bytes each: KernelBench's
LEAST_TURNS, LEAST_OF_SLOW = 8, 3
LEAST_BESIDE_THE_FIGURE = 2  # of what is said beside it, or is a limit
ALONE_SECONDS = 0.3  # for which Model is called by itself
LEAST_SHARE = 0.75  # of the device's time; as least_device_share of timing/device_timing.cpp


def loop(device, one, inputs, calls):
    """Seconds of a call by our clock, calls back to back: what a program's loop has. A quarter as many calls come first, untimed: the other side has just pushed this one's memory
    out of the caches, which a loop meets once (docs/measuring.md)."""
    for _ in range(calls // 4 + 1 if calls > 1 else 0):
        one(*inputs)
    device.wait()
    start = CLOCK()
    for _ in range(calls):
        one(*inputs)
    device.wait()
    return (CLOCK() - start) / calls


def by_events(device, one, inputs, calls, recorded=True):
    """KernelBench's `cuda_event` (timing.py at 423217d): a flush of 256 MiB, then one call between two events; gradients are recorded, as its evaluator (eval.py) leaves them on.
    The median of the calls: where the host is now and then later than the flush ends, a mean is of two kinds of calls."""
    found = []
    with torch.set_grad_enabled(recorded):
        for _ in range(calls):
            device.wait()
            events = [device.api.Event(enable_timing=True) for _ in range(2)]
            torch.empty(FLUSH, dtype=torch.int64, device=device.torch).fill_(42)
            events[0].record()
            one(*inputs)
            events[1].record()
            device.wait()
            found.append(events[0].elapsed_time(events[1]) / 1e3)
    return statistics.median(found)


def calls_of_a_sample(way, device, one, inputs, seconds):
    """As many as take about `seconds`. Of what takes far longer there are two calls here, as the first one is not like the others."""
    way(device, one, inputs, 1)
    calls = 1
    for tried in (1, 3, 3):
        start = CLOCK()
        way(device, one, inputs, tried)
        calls = max(1, min(100000, int(seconds * tried / max(CLOCK() - start, 3e-7))))
        if CLOCK() - start > 10 * tried * seconds:
            break
    return calls


def in_turns(way, device, sides, inputs, seconds, least=LEAST_OF_SLOW):
    """{side: [seconds of a call]}; which side is first changes each time. A sample takes at most 20 ms, of which a flush is a part; of slow tasks there are fewer, `least` at least.
    Beside a device, where the host launches, turns on a processor that was slow do not count if enough others are there."""
    calls, found, quick = {}, {name: [] for name in sides}, []
    with QuickProcessor(device.kind != "cpu") as host:
        for name, one in sides.items():
            host.settle()
            calls[name] = calls_of_a_sample(way, device, one, inputs, min(seconds / 80, 0.02))
        start, turn = CLOCK(), 0
        while turn < least or (CLOCK() < start + (seconds if turn >= LEAST_TURNS else 8 * seconds) and turn < 400):
            host.settle()
            for name in sorted(sides, reverse=bool(turn % 2)):
                found[name].append(way(device, sides[name], inputs, calls[name]))
            quick.append(host.was_quick())
            turn += 1
    if sum(quick) < min(LEAST_TURNS, turn):
        return found
    return {name: [t for t, counts in zip(times, quick) if counts] for name, times in found.items()}


def by_each_protocol(device, sides, inputs, seconds, least=LEAST_OF_SLOW):
    """[dict(in_turns(), protocol=its name)], by one protocol after the other."""
    ways = [("warm caches, calls back to back", loop)]
    if device.kind == "cuda":
        ways.append(("KernelBench's cuda_event", by_events))
    taken = []
    for name, way in ways:
        try:
            found = in_turns(way, device, sides, inputs, seconds / len(ways), least)
        except Exception as e:
            if way is not by_events or not out_of_memory(e):
                raise
            device.api.empty_cache()  # what a model keeps for backward() does not fit: as it is called for inference
            name += " under no_grad"
            found = in_turns(functools.partial(by_events, recorded=False), device, sides, inputs, seconds / len(ways), least)
        taken.append(dict(found, protocol=name, flushed=way is by_events))
    return taken


def model_alone(task, module, seed, device, way="eager"):
    """([{"protocol", "flushed", "seconds"} of a call of Model], what was called) while nothing of the drop-in is loaded: beside it Model counts as about so quick, whatever its process says
    then. `way`: of baseline.py; what is compiled is compiled here."""
    model = baseline.made(way, task.make_model(module).to(device.torch))
    drawn = lambda: [device.place(v.contiguous()) if isinstance(v, torch.Tensor) else v for v in task.make_inputs(module, seed)]  # forward() may write to them
    for recorded in (False,) * (way != "eager") + (True,) * (way != "eager" and device.kind == "cuda"):  # as by_events() calls it
        with torch.set_grad_enabled(recorded):
            for _ in range(baseline.CALLS_THAT_COMPILE):
                model(*drawn())
    taken = by_each_protocol(device, {"model": model}, drawn(), ALONE_SECONDS, LEAST_BESIDE_THE_FIGURE)
    return [{"protocol": found["protocol"], "flushed": found["flushed"], "seconds": statistics.median(found["model"])} for found in taken], model


def where_gradients_are_recorded(device, model, model_new, inputs, seconds):
    """In words: the ratio in a program's loop that leaves torch.no_grad() out. Both sides cost more of the host's time then, and of memory."""
    said = "with gradients recorded (no torch.no_grad()) "
    try:
        with torch.enable_grad():
            found = in_turns(loop, device, {"model": model, "model_new": model_new}, inputs, seconds, LEAST_BESIDE_THE_FIGURE)
    except Exception as e:
        if not out_of_memory(e):
            raise
        return said + "memory does not suffice"
    return said + "%.2fx" % (statistics.median(found["model"]) / statistics.median(found["model_new"]))


def out_of_memory(e):
    return isinstance(e, MemoryError) or type(e).__name__ == "OutOfMemoryError"


def alone(device, tries=10):
    """Is the device this process's now? Others are given some seconds to end."""
    if device.native:
        return True
    for i in range(tries):
        if i:
            time.sleep(1)
        if device.share() >= LEAST_SHARE:
            return True
    return False


def measured(device, model, model_new, inputs, seconds):
    """Both sides as a program calls them, on a device by two protocols: {"times": [{"protocol", "torch_seconds", "drop_in_seconds"}, ...]}, or why there are none: {"not_timed"}."""
    if not alone(device):
        return {"not_timed": "others work on the device"}
    taken = by_each_protocol(device, {"torch_seconds": model, "drop_in_seconds": model_new}, inputs, seconds)
    if not alone(device, 1):
        return {"not_timed": "others worked on the device meanwhile"}
    return {"times": taken}
