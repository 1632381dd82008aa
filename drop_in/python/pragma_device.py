"""The launches of a drop-in for a device. The first call runs the module as it is, through Triton's dispatcher, and what it launched is written down: from then on
the same kernels are launched by handle, at a few microseconds of the host's time, while the parameters, the stream and the alignment of the inputs are
what they were. Whatever cannot be written down goes on through the dispatcher. With ModelNew(..., graph=True) the whole forward is captured once,
and replayed where that was timed to be quicker."""
import contextlib
import ctypes
import functools
import threading
import time

import torch

try:
    from triton.runtime.jit import JITFunction
except ImportError:  # another Triton: its dispatcher does it all
    JITFunction = None

FROM_NOWHERE, FROM_INPUT, FROM_RESULT = -1, 0, 1  # as in pragma_launch.h
ANY_VERSION = (1 << 64) - 1  # as in pragma_launch.h
MOST_PLANS = 8  # streams of one model
REPEATS, SPREADS = 4, 4  # of a module whose results differ by themselves: runs to see by how much, and how many times as much is allowed
RECORDING = threading.Lock()


class Cuda:
    """What is asked of a device to launch on it by handle. Others launch through Triton's dispatcher until they have a row in DRIVERS."""
    lanes = 32  # of a warp

    @staticmethod
    def usable():
        return torch.version.hip is None and JITFunction is not None

    @staticmethod
    def on(index):
        return torch.cuda.device(index)

    @staticmethod
    def capturing():
        return torch.cuda.is_current_stream_capturing()

    @staticmethod
    def stream(index):
        """(function, its arguments, the current stream): what a call asks again."""
        return torch._C._cuda_getCurrentRawStream, (index,), torch._C._cuda_getCurrentRawStream(index)

    @staticmethod
    def current(index):
        return torch._C._cuda_getDevice, index

    @staticmethod
    @functools.lru_cache(None)
    def start():
        """The addresses of the driver's functions (driver_functions of pragma_launch.h)."""
        driver = ctypes.CDLL("libcuda.so.1")
        return tuple(ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in ("cuLaunchKernel", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuStreamIsCapturing"))

    @staticmethod
    def context():
        """The current device's, in a thread that has launched on it."""
        found = ctypes.c_void_p()
        ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(found))
        return found.value or 0

    @staticmethod
    @functools.lru_cache(None)
    def graphs():
        """The addresses of the driver's functions for a graph whose arguments change (graph_functions of pragma_launch.h); None where it lacks one (before CUDA 12)."""
        driver = ctypes.CDLL("libcuda.so.1")
        names = ("cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy")
        found = [getattr(driver, name, None) for name in names]
        return tuple(ctypes.cast(one, ctypes.c_void_p).value for one in found) if all(found) else None

    @staticmethod
    def empty(tensor):
        """(function, arguments) that give a new tensor like this one, which is dense."""
        quick = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
        if quick is not None:  # what Inductor's programs allocate with
            return quick, (tuple(tensor.shape), tensor.stride(), tensor.dtype)
        return functools.partial(torch.empty, tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device), ()


DRIVERS = {"cuda": Cuda}  # by Torch's name of the device


class Launcher:
    """One model's kernels: kernel.py's ModelNew, given the parameters where they changed. Called when all guards hold and no plan is attached that does."""

    def __init__(self, model, call, kernels, arguments, settings, keeper):
        self.call, self.kernels, self.arguments, self.settings, self.graphed = call, kernels, arguments, settings, model._pragma_options["graph"]
        self.patient = model._pragma_options.get("patient", False)  # nothing is written down on the first call: with parameters that change there is no second
        self.places = []  # (holder, name, does its version count: each call updates some buffers)
        updated = {u["name"] for u in settings["updates"]} | vars(model).get("_pragma_updated", set())
        for entry in settings["params"]:
            path, _, name = entry["name"].rpartition(".")
            self.places.append((keeper(model, path, name), name, entry["name"] not in updated))
        self.fast, self.known = None, None
        self.graph, self.times = None, ""  # False: not the quicker way
        self.plans = {}  # by device, stream and alignment; None where it cannot be written down
        self.why_not = ""
        self.lock = threading.Lock()

    def state(self):
        """By identity, version and address: an optimizer's step, load_state_dict and `.data = ...` all show in one of them."""
        found = []
        for holder, name, counts in self.places:
            tensor = holder[name]
            found += (tensor, ANY_VERSION if not counts else tensor._version if not tensor.is_inference() else 0, tensor.data_ptr())
        return found

    def same(self, now):
        """Of a tensor without a version (of inference mode) nothing says that it is the same."""
        before = self.known
        return before is not None and all(a is b if isinstance(a, torch.Tensor) else a == b for a, b in zip(now, before)) and not any(t.is_inference() for t in now[::3])

    def laid_out(self, now):
        args, kwargs = self.arguments
        fast = self.kernels.ModelNew(*args, **kwargs)
        fast.load_params([t.detach().contiguous() for t in now[::3]])
        return fast

    def __call__(self, *inputs):
        """The results, computed on the device of the inputs, which need not be the current one."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device("meta")
        driver = DRIVERS.get(device.type)
        with driver.on(device.index) if driver else contextlib.nullcontext(), self.lock:
            now = self.state()
            if driver is not None and driver.capturing():
                return self.laid_out(now)(*inputs)  # by what is captured: it is replayed when the parameters are others, and when this is gone
            if not self.same(now):
                self.fast, self.known, self.graph, self.plans = self.laid_out(now), now, None, {}
                self.memory = [memory_of(t) for t in now[::3]]  # nothing else comes to lie at these addresses
                self.call.attach(None)
            if self.graphed and self.on_graph(driver, device, inputs, tensors):
                return self.graph(inputs)
            return self.planned(driver, device, inputs, tensors)

    @staticmethod
    def key_of(driver, device, tensors):
        return device.index, driver.stream(device.index)[2], tuple(t.data_ptr() % 16 == 0 for t in tensors)

    def planned(self, driver, device, inputs, tensors):
        if driver is None or not driver.usable() or not self.settings.get("by_handle"):
            return self.fast(*inputs)
        key = self.key_of(driver, device, tensors)
        if key not in self.plans:
            results = self.fast(*inputs)  # compiles and tunes
            if self.patient:
                self.patient = False
                return results
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            self.plans[key] = self.written_down(driver, inputs, tensors, key)
            return results
        if self.plans[key] is None:
            return self.fast(*inputs)
        self.plans[key].attach(self.call)  # another stream's was; from now on run() launches
        return self.call.launch(tuple(tensors))

    def on_graph(self, driver, device, inputs, tensors):
        """Is a replayed graph the quicker way, on this stream? Timed once, each with what a call does beside it: a replay is Python's, which looks at the parameters
        and copies each input and each result; launches by handle are pragma_call's."""
        if self.graph is None:
            self.graph = False
            try:
                graph = Graph(self.fast, inputs)
                self.planned(driver, device, inputs, tensors)
                by_handle = self.plans.get(self.key_of(driver, device, tensors)) if driver else None
                usual = clocked((lambda: self.call.launch(tuple(tensors))) if by_handle else lambda: (self.state(), self.planned(driver, device, inputs, tensors)), graph.api)
                replayed = clocked(lambda: (self.state(), graph(inputs)), graph.api)
                self.times = " (a replayed graph: %.1f us a call, else %.1f us)" % (replayed * 1e6, usual * 1e6)
                if replayed < usual:
                    self.graph = graph
                    self.call.attach(None)
            except Exception as e:  # a forward that waits for its device cannot be captured
                self.times = " (no graph: %s: %s)" % (type(e).__name__, e)
        return self.graph and self.graph.stream == self.graph.api.current_stream()

    def written_down(self, driver, inputs, tensors, key):
        """A plan that gave the module's own results, bit for bit (or as near as two of its own, as_near()), on other contents of the inputs and with results that were garbage before;
        else None."""
        try:
            plan = Plan(self, driver, inputs, tensors, key[2])
            plan.attach(self.call)
            others = iter([t.flatten().flip(0).view(t.shape) for t in tensors])
            shuffled = [next(others) if isinstance(x, torch.Tensor) else x for x in inputs]
            wanted = self.fast(*shuffled)
            given = tuple(function(*args) for function, args in plan.made)
            for tensor in given:
                tensor.view(torch.uint8).fill_(0xAB) if tensor.dim() else tensor.fill_(-1)
            launched = self.call.launch(tuple(x for x in shuffled if isinstance(x, torch.Tensor)), given)
            if not same_bits(wanted, launched) and not as_near(wanted, launched, [self.fast(*shuffled) for _ in range(REPEATS)]):
                raise NotPlanned("launched by handle the results are others")
            return plan
        except Exception as e:  # the dispatcher is right in any case, and only slower
            self.why_not = "%s: %s" % (type(e).__name__, e)
            self.call.attach(None)
            return None

    def told(self):
        """For ModelNew.stats()."""
        return {"launches": self.how()}

    def how(self):
        if self.graph:
            return "a replayed graph" + self.times
        return ("by handle" if any(self.plans.values()) else "by Triton's dispatcher" + (": " + self.why_not if self.why_not else "")) + self.times


def clocked(call, api):
    """Seconds of a call, calls back to back."""
    best = float("inf")
    for calls in (3, 20, 20, 20):
        api.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        api.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def memory_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()  # Torch 1.13


class NotPlanned(Exception):
    """What the kernels launch cannot be written down: why."""


def same_bits(some, others):
    some, others = [r if isinstance(r, (list, tuple)) else (r,) for r in (some, others)]
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return len(some) == len(others) and all(
        a.shape == b.shape and a.dtype == b.dtype and bool(torch.equal(a.view(whole[a.element_size()]), b.view(whole[b.element_size()]))) for a, b in zip(some, others))


def as_near(wanted, given, again):
    """Is what was launched no further from the module's own results than these are from each other? Sums by atomic additions are done in another order each time. Where all of the module's own
    are the same bits, so must this be."""
    wanted, given, *again = [r if isinstance(r, (list, tuple)) else (r,) for r in (wanted, given, *again)]
    for own, one, *others in zip(wanted, given, *again):
        if same_bits(own, one):
            continue
        if not own.is_floating_point() or own.shape != one.shape or own.dtype != one.dtype:
            return False
        finite = own.isfinite()
        if not all(torch.equal(finite, o.isfinite()) for o in (one, *others)) or not torch.equal(own[~finite].nan_to_num(nan=0.0), one[~finite].nan_to_num(nan=0.0)):
            return False
        off = [(o[finite].double() - own[finite].double()).abs().max() for o in (one, *others)] if bool(finite.any()) else [0, 0]
        if not bool(off[0] <= SPREADS * max(off[1:])):
            return False
    return True


class Recorder:
    """Writes down what the kernels of a module launch in this thread: [(JITFunction, grid, arguments by name, compiled kernel)]."""

    def __init__(self, module):
        self.found, self.before, self.log, self.thread = [], [], [], threading.get_ident()
        for value in vars(module).values():
            while value is not None and not isinstance(value, JITFunction):
                value = getattr(value, "fn", None)  # an autotuner, a heuristic
            if value is not None and value not in self.found:
                self.found.append(value)

    def __enter__(self):
        RECORDING.acquire()
        for function in self.found:
            self.before.append(vars(function).get("run"))
            function.run = functools.partial(self.run, function, function.run)
        return self

    def __exit__(self, *_):
        for function, before in zip(self.found, self.before):
            if before is None:
                del function.run  # what the class has
            else:
                function.run = before
        RECORDING.release()

    def run(self, function, run, *args, grid, warmup, **kwargs):
        kernel = run(*args, grid=grid, warmup=warmup, **kwargs)
        if threading.get_ident() == self.thread:
            names = dict(zip(function.arg_names, args), **kwargs)
            self.log.append((function, grid(names) if callable(grid) else grid, names, kernel))
        return kernel


class Plan:
    """What one forward() launched: kernels by handle, and for each of their arguments whose memory it is."""

    def __init__(self, launcher, driver, inputs, tensors, aligned):
        self.driver, self.aligned, self.index = driver, aligned, tensors[0].device.index
        self.stream = driver.stream(self.index)
        if any(t.is_inference() for t in launcher.known[::3]):
            raise NotPlanned("parameters without a version: tensors of inference mode")
        with Recorder(launcher.kernels) as recorder:
            results = launcher.fast(*inputs)
        self.context = driver.context()
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        self.made, homes, self.kept = [], {}, []
        for position, tensor in enumerate(tensors):
            self.home(homes, tensor, (FROM_INPUT, position))
        for position, (tensor, entry) in enumerate(zip(results, launcher.settings["outputs"])):
            whole = list(tensor.shape) == entry["shape"] and tensor.is_contiguous() and tensor.storage_offset() == 0
            if not whole or memory_of(tensor).nbytes() > tensor.numel() * tensor.element_size():
                raise NotPlanned("a result is a part of another tensor")
            self.home(homes, tensor, (FROM_RESULT, position))
            self.made.append(driver.empty(tensor))
        self.addresses, self.launches = [], []
        for function, grid, names, kernel in recorder.log:
            first = len(self.addresses)
            for parameter in function.params:
                if not parameter.is_constexpr:
                    self.addresses.append(self.address(homes, names.get(parameter.name)))
            self.launches.append(self.launch(kernel, grid, first))
        self.parameters = [tuple(launcher.known[i:i + 3]) for i in range(0, len(launcher.known), 3)]
        del results

    @staticmethod
    def home(homes, tensor, place):
        storage = memory_of(tensor).data_ptr()
        if storage in homes:
            raise NotPlanned("two tensors of the call share their memory")
        homes[storage] = place, tensor.data_ptr()

    def address(self, homes, tensor):
        if not isinstance(tensor, torch.Tensor) or DRIVERS.get(tensor.device.type) is not self.driver:
            raise NotPlanned("a kernel takes an argument that is no tensor on the device")
        known = homes.get(memory_of(tensor).data_ptr())
        if known is None:  # scratch, or the module's own: it stays
            self.kept.append(tensor)
            return FROM_NOWHERE, 0, tensor.data_ptr()
        (where, position), start = known
        if tensor.data_ptr() < start:
            raise NotPlanned("a kernel reads before the start of a tensor")
        return where, position, tensor.data_ptr() - start

    def launch(self, kernel, grid, first):
        about = getattr(kernel, "metadata", None)
        if about is None or not isinstance(getattr(kernel, "function", None), int):
            raise NotPlanned("this Triton's kernels have no handle")
        for name, plain in (("num_ctas", 1), ("launch_cooperative_grid", False), ("launch_pdl", False), ("global_scratch_size", 0), ("profile_scratch_size", 0)):
            if getattr(about, name, plain) not in (plain, None):
                raise NotPlanned("a kernel with %s" % name)
        grid = (tuple(grid) + (1, 1))[:3]
        return kernel.function, grid, about.num_warps * self.driver.lanes, about.shared, first, len(self.addresses) - first

    def attach(self, call):
        call.attach(self.driver.start(), self.context, self.stream, self.driver.current(self.index), self.made, list(self.aligned), self.parameters, self.addresses,
                    self.launches, self.driver.graphs(), self.kept)


class Graph:
    def __init__(self, function, inputs):
        device = next(t.device for t in inputs if isinstance(t, torch.Tensor))
        self.api = getattr(torch, device.type)
        self.stream = self.api.current_stream()
        self.inputs = [t.clone() if isinstance(t, torch.Tensor) else t for t in inputs]
        side = self.api.Stream()
        side.wait_stream(self.stream)
        with self.api.stream(side):
            for _ in range(2):  # compiles, and makes what is made once
                function(*self.inputs)
        self.stream.wait_stream(side)
        self.api.synchronize()
        self.graph = self.api.CUDAGraph()
        with self.api.graph(self.graph, capture_error_mode="thread_local"):  # what other threads ask of the device meanwhile is no fault of the capture
            self.results = function(*self.inputs)

    def __call__(self, inputs):
        for kept, given in zip(self.inputs, inputs):
            if isinstance(kept, torch.Tensor):
                kept.copy_(given)
        self.graph.replay()
        if isinstance(self.results, torch.Tensor):
            return self.results.clone()  # the next call writes to the same memory
        return tuple(r.clone() for r in self.results)
