"""The device on which tensors and calls live: waiting for it, its events, its cache, graphs, its limits.

Shared by reference.py and candidate_runner.py, so that both sides of a comparison are timed by the same code. What it calls is looked
up once, at import: whoever patches torch.cuda later changes nothing here. `cpu` is a device, too, with the process's clock: the
protocol is tested with it where there is no other. Which name a backend has is in configs/backends/.
"""
import gc
import importlib
import time

import torch

CHUNK = 64             # repetitions between two waits: the queue of a device is finite
FLUSH_FACTOR = 2       # times the size of the last-level cache: written between repetitions
HEAD_START = 1.5       # times what launching takes longer than the device is busy with flushes: before the first timed call
LEAST_HEAD_START = 1e-3  # seconds: the first launch after a wait takes longer than others
MOST_HEAD_START = 300  # flushes: the queue of a device is finite
DEFAULT_CACHE = 64 << 20
CALIBRATION_SECONDS = 0.05
SHARE_SECONDS = 0.03   # of writing over the cache: many slices of time of a device that processes share (about 2 ms on an H100)
MOST_SHARE = 2000      # flushes


class Device:
    def __init__(self, text):
        self.text = text or "cpu"
        self.kind, _, index = self.text.partition(":")
        self.index = int(index or 0)
        self.api = None
        if self.kind == "npu":
            importlib.import_module("torch_npu")
        if self.kind != "cpu":
            self.api = getattr(torch, self.kind)
            if not self.api.is_available():
                raise RuntimeError("torch %s finds no %s device" % (torch.__version__, self.kind))
            if self.index >= self.api.device_count():
                raise RuntimeError("there is no %s: torch finds %d such device(s)" % (self.text, self.api.device_count()))
            self.api.set_device(self.index)
        self.torch = torch.device(self.text)
        self._buffer = None
        self._flush_seconds = self._launch_seconds = 0.0
        if self.api:
            self._wait = self._bound_wait()
            event = self.api.Event
            base = torch._C._CudaEventBase if self.kind == "cuda" else event
            self._record, self._elapsed, self._synchronize = base.record, base.elapsed_time, base.synchronize
            self._new_event = event
            self._stream = self.api.current_stream

    def _bound_wait(self):
        if self.kind == "cuda" and hasattr(torch._C, "_cuda_synchronize"):
            return torch._C._cuda_synchronize
        return self.api.synchronize

    @property
    def native(self):
        return self.api is None

    def take(self, model):
        """Moves all tensors of a model here, those that are plain attributes too."""
        model.to(self.torch)
        for module in model.modules():
            for key, value in list(vars(module).items()):
                if isinstance(value, torch.Tensor):
                    setattr(module, key, self.place(value))

    def place(self, value):
        """The value on the device, in memory of its own."""
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().to(self.torch, copy=True)

    def wait(self):
        if self.api:
            self._wait()

    def cache_bytes(self):
        if not self.api:
            return 0
        return int(getattr(self.api.get_device_properties(self.index), "L2_cache_size", 0) or DEFAULT_CACHE)

    def flush(self):
        """Writes over the last-level cache: what a call reads afterwards comes from memory."""
        if not self.api:
            return
        if self._buffer is None:
            self._buffer = torch.empty(FLUSH_FACTOR * self.cache_bytes(), dtype=torch.int8, device=self.torch)
            self._buffer.zero_()
            self._wait()
            events = [self._new_event(enable_timing=True) for _ in range(2)]
            for event in events:
                for _ in range(10):
                    self._buffer.zero_()
                self._record(event, self._stream())
            self._wait()
            self._flush_seconds = max(self._elapsed(*events) / 1e4, 1e-6)
        self._buffer.zero_()

    def _head_start(self, late):
        """Keeps the device busy for `late` seconds, in which calls are launched: a gap in which it waits for Python is no time of a kernel."""
        late = max(LEAST_HEAD_START, HEAD_START * late)
        for _ in range(min(MOST_HEAD_START, int(late / self._flush_seconds) + 1)):
            self.flush()

    def seconds(self, call, calls, flush=True):
        """Total device time of call(0) .. call(calls - 1), each after a flush and between two events."""
        if not self.api:
            total = 0.0
            for i in range(calls):
                start = time.perf_counter()
                call(i)
                total += time.perf_counter() - start
            return total
        total = 0.0
        if flush:
            self.flush()
        for first in range(0, calls, CHUNK):
            events = []
            count = min(CHUNK, calls - first)
            if flush:
                self._head_start(count * (self._launch_seconds - self._flush_seconds))
            begun = time.perf_counter()
            for i in range(first, first + count):
                pair = self._new_event(enable_timing=True), self._new_event(enable_timing=True)
                if flush:
                    self.flush()
                stream = self._stream()
                self._record(pair[0], stream)
                call(i)
                self._record(pair[1], stream)
                events.append(pair)
            self._launch_seconds = (time.perf_counter() - begun) / count
            self._wait()
            total += sum(self._elapsed(a, b) for a, b in events) / 1e3
        return total

    def share(self):
        """How much of the device's time is ours, in (0, 1]: equal pieces of work back to back, of which those wait that meet another
        process's slice of time. 1 where nobody else works on it."""
        if not self.api:
            return 1.0
        self.flush()
        count = max(16, min(MOST_SHARE, int(SHARE_SECONDS / self._flush_seconds)))
        events = [self._new_event(enable_timing=True) for _ in range(count + 1)]
        stream = self._stream()
        for event in events:
            self._buffer.zero_()
            self._record(event, stream)
        self._wait()
        spans = sorted(self._elapsed(a, b) for a, b in zip(events, events[1:]))
        total = self._elapsed(events[0], events[-1])
        return min(1.0, count * spans[count // 4] / total) if total > 0 else 1.0

    def capture(self, call):
        """A graph of one call and what the call gave, or a reason why there is none."""
        if self.kind != "cuda":
            return None, None, "no graphs on " + self.kind
        try:
            side = self.api.Stream()
            side.wait_stream(self.api.current_stream())
            with self.api.stream(side):
                for _ in range(2):
                    call()
            self.api.current_stream().wait_stream(side)
            self._wait()
            graph = self.api.CUDAGraph()
            with self.api.graph(graph):  # memory of its own: a pool that graphs share gives one's scratch to another's result
                result = call()
            self._wait()
            return graph, result, ""
        except RuntimeError as e:
            try:
                self._wait()
                self.api.empty_cache()
            except RuntimeError:
                pass
            return None, None, " ".join(str(e).split())[:200]

    def profiled(self, begin):
        """Opens (or closes) the range that a profiler records."""
        if self.kind == "cuda":
            runtime = self.api.cudart()
            (runtime.cudaProfilerStart if begin else runtime.cudaProfilerStop)()

    # -- what it is and can do -----------------------------------------------------------------------------------------

    def memory_bytes(self):
        """All that the device has."""
        return int(self.api.get_device_properties(self.index).total_memory)

    def forget(self):
        """Memory of a device that no tensor holds any more is given back."""
        gc.collect()
        if self.api:
            self.api.empty_cache()

    def facts(self):
        p = self.api.get_device_properties(self.index)

        def of(*names):
            for name in names:
                value = getattr(p, name, None)
                if value:
                    return value
            return 0

        arch = "sm_%d%d" % (p.major, p.minor) if self.kind == "cuda" and torch.version.cuda else of("gcnArchName", "name")
        return {"cpu": str(p.name), "arch": str(arch).split(":")[0], "compute_units": int(of("multi_processor_count", "cube_core_num")),
                "memory_bytes": int(of("total_memory")), "cache_bytes": [self.cache_bytes()],
                "shared_bytes": int(of("shared_memory_per_block_optin", "shared_memory_per_block")),
                "registers": int(of("regs_per_multiprocessor")), "warp_size": int(of("warp_size")),
                "max_threads": int(of("max_threads_per_multi_processor"))}

    def best(self, call):
        """Seconds of one call after a flush, the least of several samples."""
        once = max(self.seconds(lambda _: call(), 3) / 3, 1e-7)
        calls = max(3, min(200, int(CALIBRATION_SECONDS / once)))
        return min(self.seconds(lambda _: call(), calls) / calls for _ in range(3))

    def best_in_cache(self, call):
        """Seconds of one of many calls back to back, with what they leave in the cache; the least of several samples. A pair of events around each call would
        time the host's launches as well (on an H100 its L2 seemed slower than its memory); a graph launches them closer together than a stream does."""
        def many():
            for _ in range(CHUNK):
                call()

        graph = self.capture(many)[0]
        launch = graph.replay if graph else many
        least = float("inf")
        self.flush()
        for _ in range(4):
            self._head_start(CHUNK * self._launch_seconds)
            begun = time.perf_counter()
            call()  # what the head start took from the cache comes back
            events = [self._new_event(enable_timing=True) for _ in range(2)]
            self._record(events[0], self._stream())
            launch()
            self._record(events[1], self._stream())
            if not graph:
                self._launch_seconds = (time.perf_counter() - begun) / CHUNK
            self._wait()
            least = min(least, self._elapsed(*events) / 1e3 / CHUNK)
        return least

    def limits(self):
        """facts() and what is measured: bandwidths (L2 with its contents kept, memory with it flushed), peaks, an empty launch."""
        found = self.facts()
        cache = self.cache_bytes()
        read, copy = [], []
        # Few enough bytes that the cache keeps them; many enough that memory serves all of them.
        for size, best in ((cache // 4, self.best_in_cache), (max(1 << 30, 16 * cache), self.best)):
            x = torch.ones(size // 4, device=self.torch)
            y = torch.empty_like(x)
            rows = x.view(-1, 4096) if x.numel() % 4096 == 0 else x[:x.numel() // 4096 * 4096].view(-1, 4096)
            used = rows.numel() * 4
            read.append(used / best(lambda: torch.amax(rows, 1)) / 1e9)
            copy.append(2 * x.numel() * 4 / best(lambda: y.copy_(x)) / 1e9)
            read[-1] = max(read[-1], copy[-1])  # whatever can be copied can be read
            del x, y, rows
        n = 4096
        flops = 2.0 * n ** 3

        def product(dtype, tf32):
            a = torch.randn(n, n, device=self.torch).to(dtype)
            b = torch.randn(n, n, device=self.torch).to(dtype)
            before = torch.backends.cuda.matmul.allow_tf32 if self.kind == "cuda" else None
            try:
                if before is not None:
                    torch.backends.cuda.matmul.allow_tf32 = tf32
                return flops / self.best(lambda: torch.mm(a, b)) / 1e9
            finally:
                if before is not None:
                    torch.backends.cuda.matmul.allow_tf32 = before

        found["read_gbs"], found["copy_gbs"] = read, copy
        found["peak_gflops"] = product(torch.float32, False)
        found["tf32_gflops"] = product(torch.float32, True) if self.kind == "cuda" else 0.0
        found["half_gflops"] = product(torch.float16, False)
        tiny = torch.zeros(1, device=self.torch)
        found["launch_seconds"] = self.best(lambda: tiny.zero_())
        return found
