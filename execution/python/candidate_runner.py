"""A candidate written in Python (Triton) in a process of its own: what execution/runner/runner.cpp is for C++.

Speaks execution/runner/protocol.h on descriptors 3 and 4 and maps the tensors' memory files 5, 6 and 7. Nothing that it says is
believed: the Verifier compares the outputs, and its own clock stands beside the device's. `candidate_runner.py LAYOUT SETTINGS`;
started by execution/runner_process.cpp inside the sandbox. The candidate shares the process: what is done here against it (withdraw())
keeps accidents and simple tricks away, no more; docs/devices.md says what is found out from outside.
"""
import contextlib
import functools
import gc
import json
import mmap
import os
import struct
import sys
import traceback
import types
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import torch

from device import Device
from operator_record import OperatorRecord, Wrong
from taskfile import TASK_SEED, TaskFile, seed_everything, state_tensors

COMMANDS, REPLIES, PARAMS, INPUTS, OUTPUTS = 3, 4, 5, 6, 7
COMMAND = struct.Struct("=QiiqII")
REPLY = struct.Struct("=QQd")
READY, STARTED = 0x7072616764793031, 0x7072616773743031   # replies that nobody asked for
CALL, UPLOAD, RUN, TIME, CAPTURE, DOWNLOAD, PROFILE, TUNE, LOAD = range(9) # enum pragma_operation
GRAPH, UNSEEN, NO_FLUSH, ELSEWHERE = 1, 2, 4, 8                   # enum pragma_command_flag
PIECE = 1 << 26 # elements
MOST_COMPILERS = 16 # threads
CHANGED_INPUTS, CALLS_TORCH, NO_GRAPH = 8, 16, 32                 # enum pragma_reply_flag
RAISED, NO_MEMORY, TORCH_OPS = "pragma-raised", "pragma-no-memory", "pragma-torch"
TUNED = os.path.abspath("pragma-tuned")                           # there once autotuners have chosen: for the build's later processes

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
         torch.bool)
GARBAGE = 0xA5

# Looked up before the candidate is loaded: whoever replaces them in their modules later changes nothing here.
os_read, os_write, equal = os.read, os.write, torch.equal
empty_like, copy_into, flat, in_pieces = torch.empty_like, torch.Tensor.copy_, torch.Tensor.view, torch.Tensor.split


class Layout:
    """One group of tensors: "slots slot_bytes count", then for each "dtype ndim shape... offset bytes"."""

    def __init__(self, numbers):
        self.slots, self.slot_bytes, count = next(numbers), next(numbers), next(numbers)
        self.tensors = []
        for _ in range(count):
            dtype, ndim = TYPES[next(numbers)], next(numbers)
            shape = [next(numbers) for _ in range(ndim)]
            self.tensors.append((dtype, shape, next(numbers), next(numbers)))

    def views(self, fd, writable):
        if self.slots == 0:
            return []
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        memory = mmap.mmap(fd, max(self.slots * self.slot_bytes, mmap.PAGESIZE), mmap.MAP_SHARED, protection)
        os.close(fd)
        rows = []
        for slot in range(self.slots):
            row = []
            for dtype, shape, offset, size in self.tensors:
                if size == 0:
                    row.append(torch.empty(shape, dtype=dtype))
                    continue
                count = size // torch.empty((), dtype=dtype).element_size()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Torch's, of inputs that cannot be written to
                    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=slot * self.slot_bytes + offset)
                row.append(flat.reshape(shape))
            rows.append(row)
        return rows


def read_exactly(size):
    data = b""
    while len(data) < size:
        piece = os_read(COMMANDS, size - len(data))
        if not piece:
            sys.exit(0)  # in order: a profiler writes its results now
        data += piece
    return data


def load_module(path):
    import importlib.util

    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    if not isinstance(getattr(module, "ModelNew", None), type):
        raise Wrong("the module defines no class ModelNew")
    return module


def compile_all(tuner, *args, grid, warmup=False, **kwargs):
    """Stands for an autotuner's run(): every configuration is compiled and none runs. Others may be using the device, and what cannot be
    compiled is the tuner's to say when it chooses."""
    with contextlib.suppress(Exception):
        tuner.warmup(*args, grid=grid, **kwargs)


def only_compiled(run, *args, grid, warmup=False, **kwargs):
    """Stands for a kernel's run()."""
    return run(*args, grid=grid, warmup=True, **kwargs)


def compiled_side_by_side(module, call):
    """call() with every kernel of the module compiled by threads, and none run: what it computes is garbage. Where this Triton cannot, or something is wrong with a kernel, nothing is
    lost: each is compiled at its first call as well."""
    with contextlib.suppress(Exception):
        from concurrent.futures import ThreadPoolExecutor
        from triton.runtime._async_compile import AsyncCompileMode
        from triton.runtime.jit import JITFunction

        with contextlib.ExitStack() as stack:
            for value in vars(module).values():
                if is_tuner(value) and hasattr(value, "warmup"):
                    value.run = functools.partial(compile_all, value)
                    stack.callback(vars(value).pop, "run")
                while value is not None and not isinstance(value, JITFunction):
                    value = getattr(value, "fn", None)
                if value is not None and "run" not in vars(value):
                    value.run = functools.partial(only_compiled, value.run)
                    stack.callback(vars(value).pop, "run")
            with ThreadPoolExecutor(min(MOST_COMPILERS, len(os.sched_getaffinity(0)))) as pool, AsyncCompileMode(pool):
                call()


def is_tuner(value):
    """One of Triton's."""
    return hasattr(value, "cache_results") and isinstance(getattr(value, "cache", None), dict)


def withdraw():
    """Takes us out of the places where a module would find us by name: gc.get_objects(), sys.modules, the path of imports. Frames and
    object.__subclasses__() still lead here."""
    sys.path[:] = [folder for folder in sys.path if folder != HERE]
    for name in ("device", "operator_record", "taskfile"):
        sys.modules.pop(name, None)
    sys.modules["__main__"] = types.ModuleType("__main__")
    gc.collect()
    gc.freeze()


def flattened(value):
    """What nested lists and tuples hold. No closure: one that calls itself is a cycle, and would keep the tensors until the collector comes."""
    return [x for v in value for x in flattened(v)] if isinstance(value, (list, tuple)) else [value]


class Runner:
    def __init__(self, layout, settings):
        numbers = (int(word) for word in layout.split())
        next(numbers)  # threads: the settings' environment has them
        groups = [Layout(numbers) for _ in range(3)]
        self.device = Device(settings["device"])
        torch.backends.cuda.matmul.allow_tf32 = settings["tf32"] == "all"
        torch.backends.cudnn.allow_tf32 = settings["tf32"] != "none"
        params = groups[0].views(PARAMS, False)
        self.hosts = groups[1].views(INPUTS, False)
        self.outputs = groups[2].views(OUTPUTS, True)
        self.expected = groups[2].tensors
        self.slots = max(groups[1].slots, groups[2].slots)
        task = TaskFile(settings["task"])
        module = task.execute()
        own = task.make_inputs(module, TASK_SEED)
        self.constants = {i: v for i, v in enumerate(own) if not isinstance(v, torch.Tensor)}
        self.count = len(own)
        self.inputs = [[self.device.place(v) for v in row] for row in self.hosts] or [[] for _ in range(self.slots)]
        self.arguments = [self._arguments(row) for row in self.inputs]
        self.results = [None] * self.slots
        self.graphs = {}
        self.record = OperatorRecord()
        self.tuned = os.path.exists(TUNED)
        self._own = task.call("get_init_inputs()", module.get_init_inputs), params[0] if params else [], settings["params"]

    def load(self, path):
        """The candidate's module, its model and a first call."""
        module = load_module(path)
        if getattr(module, "PRAGMA_PARAMS", False) and not self.device.native and not self.tuned:
            compiled_side_by_side(module, lambda: self._make_model(module, *self._own)(*self.arguments[0]))
        self.tuners = [v for v in vars(module).values() if is_tuner(v)]
        for tuner in self.tuners:
            tuner.cache_results = self.tuned  # what was chosen before, from the build's cache
            if not self.tuned and hasattr(tuner, "warmup"):
                tuner.run = functools.partial(compile_all, tuner)
        self.model = self._make_model(module, *self._own)
        self._poison()
        self.results[0] = self._tensors(self.model(*self.arguments[0]))
        self.device.wait()
        for tuner in self.tuners:
            vars(tuner).pop("run", None)

    def tune(self):
        """Triton's autotuners try their configurations, now that the device is ours, and leave the choice in the cache."""
        for tuner in self.tuners:
            tuner.cache.clear()
            tuner.cache_results = True
        if self.tuners:
            self._forward(0)
            self.device.wait()
            with open(TUNED, "w"):
                pass

    def _arguments(self, tensors):
        rest = iter(tensors)
        return [self.constants[i] if i in self.constants else next(rest) for i in range(self.count)]

    def _make_model(self, module, arguments, params, names):
        seed_everything(TASK_SEED)
        model = module.ModelNew(**arguments) if isinstance(arguments, dict) else module.ModelNew(*arguments)
        values = [self.device.place(p) for p in params]
        if getattr(module, "PRAGMA_PARAMS", False):
            model.load_params(values)
            return model
        model = model.to(self.device.torch)
        # By name where the names are the reference's, else by position where all shapes agree; else ModelNew made its own under
        # the task's seed, as KernelBench has it.
        own = state_tensors(model)
        by_name = dict(own)
        if all(n in by_name and by_name[n].shape == v.shape for n, v in zip(names, values)):
            pairs = [(by_name[n], v) for n, v in zip(names, values)]
        elif len(own) == len(values) and all(t.shape == v.shape for (_, t), v in zip(own, values)):
            pairs = [(t, v) for (_, t), v in zip(own, values)]
        else:
            pairs = []
        with torch.no_grad():
            for mine, value in pairs:
                mine.copy_(value)
        return model

    def _tensors(self, result):
        flat = flattened(result)
        if len(flat) != len(self.expected):
            raise Wrong("forward() gave %d tensors, the reference gives %d" % (len(flat), len(self.expected)))
        for i, (value, (dtype, shape, _, _)) in enumerate(zip(flat, self.expected)):
            if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
                raise Wrong("output %d is a %s, not a plain torch.Tensor" % (i, type(value).__name__))
            if value.dtype != dtype or list(value.shape) != shape:
                raise Wrong("output %d is %s %s, expected %s %s" % (i, value.dtype, list(value.shape), dtype, shape))
            if value.device.type != self.device.torch.type:
                raise Wrong("output %d lies on %s, not on %s" % (i, value.device, self.device.text))
            if not value.is_contiguous():
                raise Wrong("output %d is not contiguous (strides %s)" % (i, list(value.stride())))
        return flat

    def _poison(self):
        """Garbage in the memory that the next outputs will most likely get: what is not written does not pass by luck."""
        garbage = []
        for dtype, shape, _, size in self.expected:
            if size:
                garbage.append(torch.empty(size, dtype=torch.uint8, device=self.device.torch).fill_(GARBAGE))
        self.device.wait()

    def _forward(self, slot):
        self.results[slot] = None
        self.results[slot] = self._tensors(self.model(*self.arguments[slot]))

    def upload(self, first, count):
        for slot in range(first, first + count):
            for host, resident in zip(self.hosts[slot] if self.hosts else [], self.inputs[slot]):
                resident.copy_(host)
        self.device.wait()

    def download(self, first, count):
        self.device.wait()
        for slot in range(first, first + count):
            if self.results[slot] is None:
                raise Wrong("there is no result for slot %d" % slot)
            for value, view in zip(self.results[slot], self.outputs[slot]):
                view.copy_(value)

    def _changed(self, first, count):
        for slot in range(first, first + count):
            for host, resident in zip(self.hosts[slot] if self.hosts else [], self.inputs[slot]):
                now = resident.cpu()
                if not equal(now.view(torch.uint8) if now.numel() and now.dim() else now,
                                   host.view(torch.uint8) if host.numel() and host.dim() else host):
                    return True
        return False

    def call(self, first, count, calls):
        """Uploads, calls, downloads: what a call of a C++ candidate is."""
        self.upload(first, count)
        for slot in range(first, first + count):
            self.results[slot] = None
        self._poison()
        if calls == 0:
            return 0
        with self.record:
            for i in range(calls):
                self._forward(first + i % count)
            self.device.wait()
        counts = self.record.counts
        for name, count in self.record.captured.items():
            counts[name] = counts.get(name, 0) + count * calls
        flags = self._report(counts, calls)
        self.download(first, min(count, calls))
        return flags | (CHANGED_INPUTS if self._changed(first, min(count, calls)) else 0)

    def _report(self, counts, calls):
        """Names the operators that were left to Torch, each with its number in one call."""
        if not counts:
            return 0
        named = ",".join("%s:%d" % (name, -(-count // calls)) for name, count in sorted(counts.items()))
        print("%s %s" % (TORCH_OPS, named), file=sys.stderr, flush=True)
        return CALLS_TORCH

    def capture(self, first, count):
        for slot in range(first, first + count):
            with self.record.looking_away():
                graph, result, why = self.device.capture(lambda: self.model(*self.arguments[slot]))
            if graph is None:
                self.graphs = {}
                self.device.forget()
                return NO_GRAPH
            self.graphs[slot] = graph, self._tensors(result)
        return 0

    def _cycle(self, first, count, calls, with_graph):
        """What makes call i. Graphs give the results of the slots that they are replayed for; the others keep what they have."""
        if not with_graph:
            model, arguments, results, tensors = self.model, self.arguments, self.results, self._tensors

            def forward(i):
                slot = first + i % count
                results[slot] = None
                results[slot] = model(*arguments[slot])

            return forward
        graphs = [self.graphs[first + i][0] for i in range(count)]
        for i in range(min(count, calls)):
            self.results[first + i] = self.graphs[first + i][1]

        def replay(i):
            graphs[i % count].replay()

        return replay

    def _settle(self, first, count, calls):
        """The results of timed calls are tensors like any others."""
        for slot in range(first, first + min(count, calls)):
            self.results[slot] = self._tensors(self.results[slot])

    def _spoil(self, first, count, calls):
        """Garbage in what the graphs will write to."""
        for i in range(min(count, calls)):
            for value in self.graphs[first + i][1]:
                value.view(-1).view(torch.uint8).fill_(GARBAGE) if value.numel() else None

    def _copy_elsewhere(self, first, count):
        """As upload(), to memory that nothing reads: of large inputs piece by piece, since the device may be full."""
        for slot in range(first, first + count):
            for host in self.hosts[slot] if self.hosts else []:
                for piece in in_pieces(flat(host, -1), PIECE):
                    copy_into(empty_like(piece, device=self.device.torch), piece)
        self.device.wait()

    def timed(self, first, count, calls, flags):
        with_graph = bool(flags & GRAPH)
        self._spoil(first, count, calls) if with_graph else self._poison()
        one = self._cycle(first, count, calls, with_graph)
        if flags & UNSEEN:
            self.upload(first, count)  # last, as a thread of the candidate could work from now on
        elif flags & ELSEWHERE:
            self._copy_elsewhere(first, count)
        seconds = self.device.seconds(one, calls, not flags & NO_FLUSH)
        self._settle(first, count, calls)
        return seconds

    def run(self, first, count, calls, with_graph):
        one = self._cycle(first, count, calls, with_graph)
        if with_graph:
            self._spoil(first, count, calls)
        for i in range(calls):
            one(i)
        self.device.wait()
        self._settle(first, count, calls)

    def profile(self, first, count, calls):
        one = self._cycle(first, count, calls, False)
        one(0)
        self.device.wait()
        self.device.profiled(True)
        for i in range(calls):
            one(i)
        self.device.wait()
        self.device.profiled(False)

    def handle(self, nonce, first, count, calls, operation, flags):
        if count < 1 or first < 0 or first + count > self.slots:
            raise Wrong("bad command")
        seconds, answer = 0.0, 0
        if operation == CALL:
            answer = self.call(first, count, calls)
        elif operation == UPLOAD:
            self.upload(first, count)
        elif operation == RUN:
            self.run(first, count, calls, bool(flags & GRAPH))
        elif operation == TIME:
            seconds = self.timed(first, count, calls, flags)
        elif operation == CAPTURE:
            answer = self.capture(first, count)
        elif operation == DOWNLOAD:
            self.download(first, count)
        elif operation == TUNE:
            self.tune()
        elif operation == PROFILE:
            self.profile(first, count, calls)
        return REPLY.pack(nonce, answer, seconds)


def explain(error, module):
    line = 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == module:
            line = frame.lineno
    text = " ".join(str(error).split())[:300] or "no message"
    if isinstance(error, Wrong):
        return "gave no usable result: " + text
    return "raised %s%s: %s" % (type(error).__name__, " in line %d" % line if line else "", text)


def lacks_memory(error):
    """Whether memory was refused, on the device or here. Drivers and old versions of Torch have no type for it, only these words."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text or "not enough memory" in text)


def main():
    settings = json.loads(sys.argv[2])
    write, unpack, size, ready, started = os_write, COMMAND.unpack, COMMAND.size, REPLY.pack(READY, 0, 0.0), REPLY.pack(STARTED, 0, 0.0)
    # Nothing may wait on our descriptors in a child (Triton starts a C compiler).
    for fd in (COMMANDS, REPLIES, PARAMS, INPUTS, OUTPUTS):
        try:
            os.set_inheritable(fd, False)
        except OSError:
            pass
    try:
        with torch.no_grad():
            runner = Runner(sys.argv[1], settings)
            write(REPLIES, started)
            if unpack(read_exactly(size))[4] != LOAD:
                raise Wrong("bad command")
            withdraw()
            runner.load(settings["module"])
            write(REPLIES, ready)
            while True:
                write(REPLIES, runner.handle(*unpack(read_exactly(size))))
    except SystemExit:
        raise
    except BaseException as e:
        traceback.print_exc()
        print("%s %s" % (NO_MEMORY if lacks_memory(e) else RAISED, explain(e, settings["module"])), file=sys.stderr, flush=True)
        os._exit(3)


if __name__ == "__main__":
    main()
