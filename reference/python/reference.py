"""The reference process: loads a task, makes inputs, computes expected outputs, runs the reference for timing.

Commands come on stdin, one JSON object a line; replies leave on a private copy of stdout, one JSON object a line (the
real stdout is turned to stderr first, so that a task which prints cannot break the protocol). The one hot command is
`r N`: run the reference N times, answered by `k`. Tensors live in memory files received over a socket (descriptor 3).
Started and driven by reference/reference.cpp, which has the list of commands.
"""
import os
import sys

REPLIES = os.dup(1)
os.dup2(2, 1)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import contextlib
import copy
import gc
import importlib
import json
import re
import socket
import time
import traceback
import warnings

warnings.filterwarnings("ignore")

import torch

import baseline, steps, tf32
from cost import base_name, MATMUL
from device import Device
from describe import describe
from indices import IndexRecord, point_to
from inputs import transform
from memory_files import first_bad, Memory, trim
from neighbours import beside
from operator_times import operator_times
from oracle import CASTING, in_float64, in_pieces, is_full, MOST_PIECES, widened
from processors import all_cpus, LAST_TOOK, THREADS
from room import at_most
from taskfile import copy_state, drawing_modules, equal, flatten_outputs, seed_everything, state_tensors, TASK_SEED, TaskError, TaskFile, twin

DEVICE = None  # where Model runs; set in main(), whose failure is an answer
BASELINE = os.environ.get("PRAGMA_BASELINE", "eager")
TF32 = os.environ.get("PRAGMA_TF32", "none")  # base/tf32.hpp


def reset_defaults():
    """What one task file sets must not reach the next."""
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(THREADS)
    torch.set_flush_denormal(False)
    torch.use_deterministic_algorithms(False)
    torch.backends.cuda.matmul.allow_tf32 = TF32 == "all"
    torch.backends.cudnn.allow_tf32 = TF32 != "none"


class Reference:
    """The loaded task and its memory."""

    def __init__(self, task, told, memories, slots):
        self.task, self.told, self.slots = task, told, slots
        self.params, self.inputs, self.outputs, self.oracles = memories
        self.module = task.execute()
        self.model = task.make_model(self.module)
        copy_state(self.model, self.params.views[0], task.path)
        # The constants among the inputs are those of the task's own seed, for every slot.
        own = task.make_inputs(self.module, TASK_SEED)
        self.constants = {i: v for i, v in enumerate(own) if not isinstance(v, torch.Tensor)}
        self.count = len(own)
        if not DEVICE.native:
            DEVICE.take(self.model)
        # On a device the inputs have a second home, whose addresses stay; on the CPU they are the shared memory itself.
        self.resident = self.inputs.views if DEVICE.native else [[DEVICE.place(v) for v in row] for row in self.inputs.views]
        self.arguments = [self._arguments(row) for row in self.resident]
        self.timed = self.model
        self.graphs = []
        self.clone_inputs = False
        self.mutated, self.saved, self.saved64 = [], {}, {}
        self.model64, self.oracle_problem = None, ""
        self.pieces = 1  # of the batch, one after the other, in float64
        self.first = None
        self.checked = False

    def _arguments(self, tensors):
        rest = iter(tensors)
        return [self.constants[i] if i in self.constants else next(rest) for i in range(self.count)]

    def fill(self, slot, seed, kind):
        values = [v for v in self.task.make_inputs(self.module, seed) if isinstance(v, torch.Tensor)]
        views = self.inputs.views[slot]
        if [(v.shape, v.dtype) for v in values] != [(v.shape, v.dtype) for v in views]:
            raise TaskError("%s: get_inputs() gives other shapes or types under another seed" % self.task.path, "a task must have fixed shapes")
        with torch.no_grad():
            for i, (value, view) in enumerate(zip(values, views)):
                view.copy_(transform(value, kind, (seed * 31 + i) % (1 << 62)))
            self.upload(slot)

    def upload(self, slot):
        if not DEVICE.native:
            for value, resident in zip(self.inputs.views[slot], self.resident[slot]):
                resident.copy_(value)

    def forward(self, arguments):
        if self.clone_inputs:
            arguments = [v.clone() if isinstance(v, torch.Tensor) else v for v in arguments]
        return self.task.call("forward()", lambda: self.model(*arguments))

    def results(self, model, result):
        """The outputs as the task has them: what forward() returned, then the new values of the buffers that it updated."""
        state = dict(state_tensors(model)) if self.told["updated"] else {}
        return flatten_outputs(result, self.task.path) + [state[name].clone() for name in self.told["updated"]]

    def restore(self, model, saved):
        for name, tensor in state_tensors(model):
            if name in saved:
                tensor.copy_(saved[name])

    def compute(self, slot):
        """The reference's outputs for a slot, with its buffers as they were before the first call. Returns them where its device has them, on a CPU no second time."""
        self.restore(self.model, self.saved)
        outputs = self.results(self.model, self.forward(self.arguments[slot]))
        for value, view in zip(outputs, self.outputs.views[slot]):
            if value.shape != view.shape or value.dtype != view.dtype:
                raise TaskError("%s: forward() returns %s %s where %s %s was traced" % (self.task.path, value.dtype, list(value.shape), view.dtype, list(view.shape)), "", "torch_only")
            view.copy_(value)
        return self.outputs.views[slot] if DEVICE.native else outputs

    def oracle(self, slot, outputs):
        """The same in float64, or the reference's own result widened."""
        views = {}
        for i, value in enumerate(outputs):
            if value.is_floating_point():
                views[i] = self.oracles.views[slot][len(views)]
        pieces, short = self.pieces, False
        while self.model64 is not None:
            trim()
            try:
                self.wide_results(slot, outputs, views)
                return
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as e:
                short |= is_full(e)
                if is_full(e) and self.pieces < MOST_PIECES:
                    self.pieces *= 2
                elif short and self.checked:  # who was compared with the twin so far is not compared with less because others took memory
                    self.pieces = pieces
                    raise MemoryError("in float64 (%s)" % " ".join(str(e).split())[:200]) from None
                elif self.model64 not in CASTING and not is_full(e):
                    CASTING.add(self.model64)
                else:
                    short = "memory is short, and " if self.pieces > 1 else ""
                    self.model64, self.oracle_problem = None, "%s%s: %s" % (short, type(e).__name__, " ".join(str(e).split())[:200])
            DEVICE.forget()  # outside of the handler, whose error holds what the call had allocated
        for i, view in views.items():
            view.copy_(outputs[i])

    def wide_results(self, slot, outputs, views):
        def call(arguments):
            self.restore(self.model64, self.saved64)
            return self.results(self.model64, in_float64(self.model64, arguments))

        def receive(output, begin, end, values):
            views[output][begin:end].copy_(values)

        if self.pieces > 1:
            in_pieces(call, self.arguments[slot], outputs, self.pieces, receive)
            return
        wide = call([widened(v) for v in self.arguments[slot]])
        for value, reference in zip(wide, outputs):
            if reference.is_floating_point() and value.dtype != torch.float64:
                raise TypeError("forward() casts its result to %s" % value.dtype)
            if value.shape != reference.shape:
                raise TypeError("another shape in float64")
        for i, view in views.items():
            view.copy_(wide[i])

    def again(self, slot, wide, run=None):
        """forward()'s outputs for a slot, once more; `wide`: in float64, where there is such a model and memory for it; `run`: of neighbours.py."""
        wide = wide and self.model64 is not None and self.pieces == 1
        self.restore(*((self.model64, self.saved64) if wide else (self.model, self.saved)))
        model, arguments = beside(self.model64 if wide else self.model, self.model, self.arguments[slot], run)
        return self.results(model, in_float64(model, [widened(v) if wide else v.clone() if isinstance(v, torch.Tensor) else v for v in arguments]))

    def point_to(self, slot, output, positions, indices):
        """What indices in an output point to, by the float64 model (else by the reference's own)."""
        with IndexRecord() as record:
            outputs = self.again(slot, True)
        return point_to(record, outputs[output], positions, indices, self.outputs.views[slot][output])

    def make_oracle_model(self):
        try:
            self.model64 = twin(self.task, self.module, self.model).double()
            for module in self.model64.modules():
                for key, value in list(vars(module).items()):
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        setattr(module, key, value.double())
            self.saved64 = {name: value.double() if value.is_floating_point() else value for name, value in self.saved.items()}
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as e:
            self.model64 = None
            self.oracle_problem = "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:200])

    def trial(self):
        """The first call, on the task's own inputs in slot 0: finite, and what it changes. Returns its seconds."""
        self.fill(0, TASK_SEED, "own")
        before = [(name, value.detach().clone()) for name, value in state_tensors(self.model)]
        inputs_before = [v.clone() for v in self.inputs.views[0]]
        seed_everything(TASK_SEED)
        if not DEVICE.native:
            self.forward(self.arguments[0])  # libraries are loaded and algorithms chosen in the first call
            self.upload(0)
            self.restore(self.model, dict(before))
            DEVICE.wait()
        start = time.perf_counter()
        result = self.forward(self.arguments[0])
        DEVICE.wait()
        seconds = time.perf_counter() - start
        outputs = [o.clone() for o in self.results(self.model, result)]
        for i, output in enumerate(outputs):
            bad = first_bad(output)
            if bad:
                raise TaskError("%s: the reference's own output%s holds %s at index %s, on the task's own inputs" %
                                (self.task.path, " %d" % i if len(outputs) > 1 else "", bad[0], bad[1]),
                                "a kernel cannot be checked against it; correct the task's inputs or forward()")
        if not all(torch.equal(a, b.to(a.device)) for a, b in zip(inputs_before, self.resident[0])):
            self.clone_inputs = True
            for value, view in zip(inputs_before, self.inputs.views[0]):
                view.copy_(value)
            self.upload(0)
        self.saved = {name: value for (name, value), (_, now) in zip(before, state_tensors(self.model))
                      if name in self.told["updated"] or not equal(value, now)}
        self.first = outputs
        return {"seconds": seconds}

    def check(self, pieces, room):
        """After trial(): is it repeatable, is there an oracle (in so many pieces of the batch; 0: none). Fills the expected results and inputs of all slots. `room`: bytes, of at_most()."""
        notes = []
        outputs, self.first = self.first, None
        with at_most(room):
            self.restore(self.model, self.saved)
            again = self.results(self.model, self.forward(self.arguments[0]))
            deterministic = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(outputs, again))
            del again, outputs
            if pieces:
                self.pieces = pieces
                self.make_oracle_model()
            else:
                self.oracle_problem = "memory is short"
            self.oracle(0, self.compute(0))
        if self.oracle_problem:
            notes.append("no float64 oracle (%s): outputs are compared with the reference's own" % self.oracle_problem)
        elif self.pieces > 1:
            notes.append("memory is short: the float64 oracle is computed in %d pieces of the batch" % self.pieces)
        if not deterministic and self.told["graph_random"]:
            found = drawing_modules(self.model)
            raise TaskError("%s: forward() draws random numbers, so that no two calls agree and no kernel can be checked: %s" %
                            (self.task.path, found[0] if found else "a random function of Torch is called in it"),
                            "call self.eval() at the end of Model.__init__, or remove the layer" if found else
                            "make the random numbers in get_inputs(), or pass training=self.training to the function and call self.eval()", "torch_only")
        if not deterministic and not self.told["graph_random"]:
            notes.append("two calls of the reference on the same inputs differ")
        if self.clone_inputs and not self.told["writes_inputs"]:
            notes.append("forward() writes to its inputs: the reference gets copies, whose making is part of its time")
        for slot in range(1, self.slots):
            for value, view in zip(self.inputs.views[0], self.inputs.views[slot]):
                view.copy_(value)
            self.upload(slot)
        self.checked = True
        return {"deterministic": deterministic, "mutated": sorted(self.saved), "notes": notes,
                "oracle_float64": self.model64 is not None, **self.choose_baseline(notes)}

    def choose_baseline(self, notes):
        """What is timed from now on: "baseline", its name, and "way", one of baseline.WAYS."""
        def call(model):
            self.timed = model
            self.run(self.slots)

        try:
            self.timed, way, name, more = baseline.choose(BASELINE, self.model, call, DEVICE.kind == "cuda")
        except Exception as e:
            raise TaskError("%s: the baseline %s cannot be had: %s" % (self.task.path, baseline.named(BASELINE), " ".join(str(e).split())[:400]),
                            "--baseline eager, or --baseline best, which leaves out what fails; PRAGMA_PYTHON names another Python with Torch", "unsupported")
        notes.extend(more)
        return {"baseline": name, "way": way}

    def run(self, calls):
        """The timed loop: nothing in it but the calls."""
        model, arguments, slots = self.timed, self.arguments, self.slots
        if self.clone_inputs:
            for i in range(calls):
                model(*[v.clone() if isinstance(v, torch.Tensor) else v for v in arguments[i % slots]])
            DEVICE.wait()
            return
        slot = 0
        for _ in range(calls):
            model(*arguments[slot])
            slot += 1
            if slot == slots:
                slot = 0
        DEVICE.wait()

    def one_call(self, i):
        arguments = self.arguments[i % self.slots]
        if self.clone_inputs:
            arguments = [v.clone() if isinstance(v, torch.Tensor) else v for v in arguments]
        return self.timed(*arguments)

    def capture(self):
        """A graph of one call for each slot."""
        self.graphs = []
        for slot in range(self.slots):
            graph, result, _ = DEVICE.capture(lambda: self.one_call(slot))
            if graph is None:
                self.graphs = []
                DEVICE.forget()
                return False
            self.graphs.append((graph, result))
        return True

    def seconds(self, calls, with_graph):
        if with_graph:
            graphs = self.graphs
            return DEVICE.seconds(lambda i: graphs[i % len(graphs)][0].replay(), calls)
        return DEVICE.seconds(self.one_call, calls)


class Server:
    def __init__(self):
        self.channel = socket.socket(fileno=3)
        self.task = self.told = self.reference = None

    def hello(self, _):
        capability = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
        return {"torch": torch.__version__, "python": "%d.%d.%d" % sys.version_info[:3], "threads": torch.get_num_threads(),
                "capability": capability.group(1) if capability else "", "blas": baseline.blas(),
                "device": "" if DEVICE.native else DEVICE.facts()["cpu"]}

    def describe(self, command):
        reset_defaults()
        task = TaskFile(command["file"])
        told, largest = describe(task, command["max_bytes"], None if DEVICE.native else DEVICE.memory_bytes())
        graph = told["graph"]
        if graph and DEVICE.kind == "cuda" and tf32.allowed():
            tf32.mark(graph, DEVICE.torch)
        reset_defaults()
        self.task = task
        if graph and baseline.blas().startswith("libblas.so") and any(base_name(n["op"]) in MATMUL
                                                                 for n in graph["nodes"]):
            told["notes"].append("Torch uses the reference BLAS here, many times slower than OpenBLAS: a speed-up against it says "
                                 "little (install libopenblas0-pthread)")
        self.told = {"updated": [u["name"] for u in told["updates"] if "output" in u], "graph_random": bool(graph and graph["random"]),
                     "writes_inputs": bool(graph and any(m.startswith("input") for m in graph["mutated"]))}
        told["graph"] = json.dumps(graph, allow_nan=False, separators=(",", ":")) if graph is not None else ""
        return {"task": told, "largest_bytes": largest if DEVICE.native else 0}

    def map(self, command):
        self.reference = None
        LAST_TOOK.clear()
        gc.collect()
        _, descriptors, _, _ = socket.recv_fds(self.channel, 1, 4)
        slots = command["slots"]
        keys = ("params", "inputs", "outputs", "oracle")
        memories = [Memory(fd, command[key], 1 if key == "params" else slots) for fd, key in zip(descriptors, keys)]
        reset_defaults()
        self.reference = Reference(self.task, self.told, memories, slots)
        torch.set_num_threads(THREADS)  # whatever the task file says: both sides are measured with the same
        return {}

    def trial(self, _):
        return self.reference.trial()

    def check(self, command):
        result = self.reference.check(command["pieces"], command["bytes"])
        gc.collect()
        trim()
        return result

    def fill(self, command):
        with all_cpus("fill", DEVICE):
            self.reference.fill(command["slot"], command["seed"], command["kind"])
        return {}

    def compute(self, command):
        with at_most(command["bytes"]):
            outputs = self.reference.compute(command["slot"])
            with all_cpus("oracle", DEVICE):
                self.reference.oracle(command["slot"], outputs)
            del outputs
        trim()
        return {"oracle_float64": self.reference.model64 is not None}

    def point_to(self, command):
        with torch.no_grad(), all_cpus("point_to", DEVICE):
            return {"found": self.reference.point_to(command["slot"], command["output"], command["positions"], command["indices"])}

    def not_explained(self, command):
        with torch.no_grad(), all_cpus("steps", DEVICE):
            return {"left": steps.not_explained(lambda *how: self.reference.again(command["slot"], *how), *(command[name] for name in ("output", "positions", "got", "allowed", "factor")))}

    def time(self, command):
        gc.disable()
        try:
            return {"seconds": self.reference.seconds(command["calls"], command["graph"])}
        finally:
            gc.enable()

    def capture(self, _):
        return {"captured": self.reference.capture()}

    def share(self, _):
        return {"share": DEVICE.share()}

    def operators(self, _):
        reference = self.reference
        return {"operators": operator_times(lambda i: reference.forward(reference.arguments[i % reference.slots]), DEVICE)}

    def limits(self, _):
        return {"limits": DEVICE.limits()}

    def release(self, _):
        self.reference = None
        gc.collect()
        return {}

    def handle(self, line):
        try:
            if line.startswith(b"r"):
                gc.disable()
                try:
                    self.reference.run(int(line[1:]))
                finally:
                    gc.enable()
                return b"k\n"
            command = json.loads(line)
            result = dict(getattr(self, command["do"])(command), ok=True)
        except TaskError as e:
            result = {"ok": False, "code": e.code, "message": str(e), "hint": e.hint}
        except (MemoryError, RuntimeError) as e:
            text = " ".join(str(e).split())
            result = {"ok": False, "code": "limit_exceeded" if is_full(e) else "internal",
                      "message": "the reference ran out of memory: " + text if is_full(e) else self.where(e), "hint": ""}
        except Exception as e:
            result = {"ok": False, "code": "internal", "message": self.where(e), "hint": ""}
        return json.dumps(result, allow_nan=False).encode() + b"\n"

    @staticmethod
    def where(error):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return "%s: %s (%s:%d)" % (type(error).__name__, " ".join(str(error).split())[:400], os.path.basename(frame.filename),
                                   frame.lineno)

    def serve(self):
        for line in iter(sys.stdin.buffer.readline, b""):
            reply = self.handle(line)
            while reply:
                reply = reply[os.write(REPLIES, reply):]


def main():
    global DEVICE
    try:
        DEVICE = Device(os.environ.get("PRAGMA_DEVICE", "cpu"))
    except (RuntimeError, ImportError, AttributeError) as e:
        message = "%s cannot use %s: %s" % (sys.executable, os.environ.get("PRAGMA_DEVICE"), " ".join(str(e).split())[:300])
        os.write(REPLIES, json.dumps({"ok": False, "code": "not_found", "message": message,
                                      "hint": "set PRAGMA_PYTHON to a Python whose Torch has this device"}).encode() + b"\n")
        return
    if not DEVICE.native:
        with contextlib.suppress(ImportError):
            importlib.import_module("triton")  # so that its modules are compiled, too, for the candidates' processes
    torch.set_num_threads(THREADS)
    torch.set_num_interop_threads(1)
    gc.collect()
    gc.freeze()  # Torch's own objects, which a collection would walk through for 40 ms each time
    with torch.no_grad():
        Server().serve()


if __name__ == "__main__":
    main()
