"""Which operators of aten a candidate's calls leave to Torch. Used by candidate_runner.py, inside the candidate's process: what it says is a
first look, and docs/devices.md has what it cannot see."""
import contextlib
import threading

import torch

# Operators that make or describe memory and compute nothing. Everything else of aten is Torch's work, and counted.
BOOKKEEPING = frozenset((
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "view", "view_as", "reshape", "_reshape_alias",
    "_unsafe_view", "as_strided", "t", "transpose", "permute", "expand", "expand_as", "squeeze", "unsqueeze", "slice", "select",
    "narrow", "flatten", "unflatten", "detach", "alias", "resize_", "set_", "contiguous", "to", "size", "stride", "is_contiguous",
    "unbind", "split", "chunk", "movedim", "lift_fresh", "result_type", "requires_grad_", "_to_copy_none", "resolve_conj", "resolve_neg"))
MARK = "erfinv_"  # stands before and after what is recorded: whoever switches the record off loses one


class Wrong(Exception):
    """The candidate's result is not what the task asks for."""


class OperatorRecord:
    """Counts operators by Torch's own profiler: its functions, not its Python classes, which anybody could replace. (A dispatch mode
    would see the same; importing one costs 5 s.) Of all threads where Torch can, from 2.8 on."""

    def __init__(self):
        self.counts, self.captured = {}, {}  # operator -> how often, of those that compute: when last recorded; in graphs of the candidate's own
        self._activities = {torch.autograd.ProfilerActivity.CPU}
        self._prepare, self._enable = torch.autograd._prepare_profiler, torch.autograd._enable_profiler
        self._disable, self._enabled = torch.autograd._disable_profiler, torch._C._autograd._profiler_enabled
        self._mark, self._thread = getattr(torch.zeros(1), MARK), threading.get_ident
        self._running = None  # the thread in which it is recorded
        self._away = False
        profile = torch.autograd.profiler.profile
        try:
            everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
            self._config, self.all_threads = profile(experimental_config=everywhere).config(), True
            self.all_threads = self._sees_threads()
        except (AttributeError, TypeError, RuntimeError, Wrong):
            self.all_threads = False
        if not self.all_threads:
            self._config = profile().config()
        with contextlib.suppress(AttributeError, TypeError):
            self._watch_captures(torch._C._CUDAGraph)

    def _sees_threads(self):
        with self:
            other = threading.Thread(target=self._mark)
            other.start()
            other.join()
        return self.counts.get(MARK) == 1

    def __enter__(self):
        self._prepare(self._config, self._activities)
        self._enable(self._config, self._activities)
        self._running = self._thread()
        self._mark()
        return self

    def __exit__(self, kind, error, trace):
        self._running, self.counts = None, {}
        if self.all_threads or self._enabled():
            self._mark()
            with contextlib.suppress(RuntimeError):  # it is off
                for event in self._disable().events():
                    name = event.name()
                    if name.startswith("aten::") and name[6:] not in BOOKKEEPING:
                        self.counts[name[6:]] = self.counts.get(name[6:], 0) + 1
        marks = self.counts.pop(MARK, 0)
        if marks > 2:
            self.counts[MARK] = marks - 2
        if marks < 2 and kind is None:
            raise Wrong("forward() switched Torch's record of operators off")

    @contextlib.contextmanager
    def looking_away(self):
        """While the runner captures the candidate's calls, which are recorded otherwise."""
        self._away = True
        try:
            yield
        finally:
            self._away = False

    def _watch_captures(self, graph):
        """What a graph captured runs again at each replay, unseen: it is recorded while it is captured, whenever that is."""
        begin, end = graph.capture_begin, graph.capture_end
        own = []  # what was recorded elsewhere when our record of a capture began

        def capture_begin(self_, *args, **kwargs):
            if not self._away and self._running != self._thread() and not (self.all_threads and self._running):
                own.append(self._running)
                self.__enter__()
            return begin(self_, *args, **kwargs)

        def capture_end(self_, *args, **kwargs):
            try:
                return end(self_, *args, **kwargs)
            finally:
                if own:
                    before = own.pop()
                    try:
                        self.__exit__(None, None, None)
                    except Wrong:
                        self.counts = {"operators of a graph whose record was switched off": 1}
                    self._running = before
                    for name, count in self.counts.items():
                        self.captured[name] = self.captured.get(name, 0) + count

        graph.capture_begin, graph.capture_end = capture_begin, capture_end
