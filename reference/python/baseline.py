"""What a kernel is timed against: Model as it is, Model compiled by Torch, or the quickest of these on this machine ("best")."""
import contextlib
import os
import re
import time

import torch

WAYS = ("eager", "compile", "max-autotune")
ROUNDS = 5             # of each way in turn; the least counts
ROUND_SECONDS = 0.1    # of calls
CALLS_THAT_COMPILE = 2 # shapes that were dynamic in the first are compiled again

# Workers that compile beside us would count as the task's processes and wait for the CPUs that timing is pinned to.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# Headers that are compiled once for all programs of a user take each process that begins with nothing 7 s, and a copy of what another has compiled needs none.
os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")


class NoCompiler(RuntimeError):
    pass


def made(way, model):
    if way == "eager":
        return model
    if not hasattr(torch, "compile"):
        raise NoCompiler("Torch %s has no torch.compile" % torch.__version__)
    return torch.compile(model) if way == "compile" else torch.compile(model, mode=way)


def import_compiler(way):
    """What torch.compile imports when it is called first: seconds, for which nobody needs the device. Whether it works is found out when it is called."""
    if way == "eager":
        return
    try:
        import torch._dynamo
        import torch._inductor.compile_fx
    except Exception:
        pass


def seconds_of(call):
    """Of one call: the least of several rounds is taken by whoever asks."""
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    calls = max(1, int(ROUND_SECONDS / once))
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def compiled_for_evaluators(chosen, call):
    """The other program that Torch makes of a model where gradients are recorded, as KernelBench's evaluator calls it: made once, it lies in the cache that the processes of a drop-in
    begin with (drop_in/python/called_times.py), each of which made it anew else. What fails here, for want of memory, is said there."""
    with torch.enable_grad(), contextlib.suppress(Exception):
        for _ in range(CALLS_THAT_COMPILE):
            call(chosen)


def explained(error):
    """What the compiler raised, or, where it found none of Torch's headers, what to install: its own words are 20 lines with the reason in the middle."""
    if "fatal error: ATen/" in str(error) or "fatal error: torch/" in str(error):
        return NoCompiler("torch.compile finds no headers of Torch %s (Debian and Ubuntu have them in libtorch-dev)" % torch.__version__)
    return error


def choose(asked, model, call, evaluators=False):
    """(the model to time, its way, its name, notes). `call(model)` makes one call, waited for; `evaluators`: is it called with gradients recorded, too, later? A way that was asked for
    and fails is an error (NoCompiler, or what Torch raised); where the best is asked for it is left out, and a note says why."""
    if asked != "best":
        chosen = made(asked, model)
        if asked != "eager":
            try:
                for _ in range(CALLS_THAT_COMPILE):
                    call(chosen)
            except Exception as e:
                raise explained(e) from e
            if evaluators:
                compiled_for_evaluators(chosen, call)
        return chosen, asked, named(asked), []
    ready, notes = {}, []
    for way in WAYS:
        try:
            candidate = made(way, model)
            for _ in range(CALLS_THAT_COMPILE):
                call(candidate)
            ready[way] = candidate
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as e:
            if way == "eager":
                raise
            notes.append("not among the baselines: %s (%s)" % (named(way), " ".join(str(explained(e)).split())[:200]))
    least = {way: float("inf") for way in ready}
    for _ in range(ROUNDS):
        for way, candidate in ready.items():
            least[way] = min(least[way], seconds_of(lambda: call(candidate)))
    best = min(least, key=least.get)
    if evaluators and best != "eager":
        compiled_for_evaluators(ready[best], call)
    notes.append("baselines here, one call: " + ", ".join("%s %.4g ms" % (named(way), 1e3 * t) for way, t in least.items()))
    return ready[best], best, named(best) + ", the best of %d" % len(ready), notes


def named(way):
    return {"eager": "eager", "compile": "torch.compile"}.get(way, "torch.compile max-autotune")


def blas():
    """The BLAS that Torch calls: what it was built with, or, where that is whatever the system provides (Debian), the file
    name of the one that is loaded, e.g. libopenblasp-r0.3.21.so."""
    built_with = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    if built_with and built_with.group(1) != "generic":
        return built_with.group(1)
    try:
        with open("/proc/self/maps") as f:
            files = {line.split()[-1] for line in f if "blas" in line or "libmkl" in line or "libblis" in line}
    except OSError:
        return ""
    names = sorted(os.path.basename(os.path.realpath(f)) for f in files)
    best = [n for n in names if "openblas" in n or "mkl" in n or "blis" in n] or [n for n in names if n.startswith("libblas")]
    return best[0] if best else ""
