// Candidates in Python, with the CPU standing in for a device: the runner's protocol, the verdicts, the timing and its audits. What
// hostile modules try is in python_hostile_test.cpp.
#include "reference/call_limit.hpp"
#include "execution/runner_process.hpp"
#include "tests/fixtures/python_fixture.hpp"
#include "tests/fixtures/skip.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <unistd.h>

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

TEST_CASE("A right module passes, with the reference's parameters and the task's constants", "[python]") {
  const auto v = judge(module_of("return self.right(x, scale)"));
  INFO(v.reason << "\n" << v.log);
  CHECK(v.passed());
  REQUIRE(v.torch_operators.size() >= 2);
  CHECK_THAT(v.torch_operators.front() + v.torch_operators.back(), Contains(":"));
}

TEST_CASE("What is left to Torch is named, and refused unless it is allowed", "[python]") {
  const auto v = judge(module_of("return self.right(x, scale)"), false);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh") && Contains("to Torch"));
}

TEST_CASE("Operators are named however much a module has printed", "[python]") {
  const auto v = judge(module_of("if not self.calls: self.calls = 1; print(('x' * 99 + '\\n') * 2000, flush=True)\n        return self.right(x, scale)"), false);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh"));
}

TEST_CASE("A task may have the module's file name", "[python]") {
  auto other = loaded_task::load(python_task, 4, "candidate.py");
  auto runner = runner_process::start(made(module_of("return self.right(x, scale)")), other.ref, {});
  if (!runner) FAIL(render(runner.error()));
  CHECK(runner->call(0, 1, 1, 20));
}

TEST_CASE("A module may take its parameters as a list", "[python]") {
  candidate c;
  c.language = "triton";
  c.source = R"(import torch
PRAGMA_PARAMS = True

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
    def load_params(self, tensors):
        self.weight, self.bias = tensors
    def forward(self, x, scale):
        return torch.tanh(x @ self.weight.t() + self.bias) * scale
)";
  CHECK(judge(c).passed());
}

TEST_CASE("What is no module is refused before it runs", "[python]") {
  candidate c;
  c.language = "triton";
  c.source = "class ModelNew:\n  def forward(self:\n    pass\n";
  auto output = build_candidate(c);
  REQUIRE(!output);
  CHECK(output.error().code == ec::build_failed);
  CHECK_THAT(output.error().message, Contains("line 2"));
  c.source = "print('hello')\n";
  output = build_candidate(c);
  REQUIRE(!output);
  CHECK_THAT(output.error().message, Contains("ModelNew"));
}

TEST_CASE("A TMPDIR that the sandbox's user cannot enter keeps no module from being built", "[python]") {
  if (::geteuid() != 0) return; // an ordinary user's candidates have that user's rights
  auto closed = temp_dir::create("pragma-closed-");
  REQUIRE(closed);
  std::filesystem::permissions(closed->path(), std::filesystem::perms::owner_all);
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  ::setenv("TMPDIR", closed->path().c_str(), 1);
  const auto output = build_candidate(module_of("return self.right(x, scale)"));
  before ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
  if (!output) FAIL(render(output.error()));
}

TEST_CASE("A module that fails says why", "[python]") {
  auto v = judge(module_of("raise ValueError('no such block size')"));
  CHECK(v.stage == verdict_stage::load);
  CHECK_THAT(v.reason, Contains("raised ValueError in line 14") && Contains("no such block size"));
  v = judge(module_of("return self.right(x, scale).double()"));
  CHECK_THAT(v.reason, Contains("torch.float64"));
  v = judge(module_of("return self.right(x, scale)[:, :3]"));
  CHECK_THAT(v.reason, Contains("expected torch.float32 [64, 256]"));
  v = judge(module_of("return self.right(x, scale).t().contiguous().t()"));
  CHECK_THAT(v.reason, Contains("not contiguous"));
  v = judge(module_of("os._exit(0)"));
  CHECK_THAT(v.reason, Contains("ended its process by itself"));
}

TEST_CASE("That memory was refused to a module is told apart, and not by words that it prints", "[python]") {
  auto v = judge(module_of("raise RuntimeError('CUDA out of memory. Tried to allocate 20 GiB')")); // as a driver's error without a type
  CHECK(v.stage == verdict_stage::load);
  CHECK(v.why_not == doubt::out_of_memory);
  v = judge(module_of("raise ValueError('out of memory')"));
  CHECK(v.stage == verdict_stage::load);
  CHECK(v.why_not == doubt::none);
}

TEST_CASE("Wrong modules are found out", "[python]") {
  CHECK(judge(module_of("return torch.zeros_like(x)")).stage == verdict_stage::compare);
  CHECK(judge(module_of("return torch.empty_like(x)")).stage == verdict_stage::compare);
  const auto v = judge(module_of("return self.kept.setdefault(x.data_ptr(), self.right(x, scale).clone())"));
  CHECK(v.stage == verdict_stage::compare);
  CHECK_THAT(judge(module_of("y = self.right(x, scale); x.zero_(); return y")).reason, Contains("changed its inputs"));
  // On a stand-in that is all CPU the outputs' descriptor is the only one that leads anywhere.
  CHECK(!judge(module_of("os.write(4, b'x' * 24); return self.right(x, scale)")).passed());
  CHECK(!judge(module_of("import socket; socket.create_connection(('127.0.0.1', 80)); return self.right(x, scale)")).passed());
}

namespace {

/// A process waits for its candidate, maybe in vain; then the candidate is built and started. Gives whether that process serves it.
bool waiting_process_serves(bool killed) {
  auto& b = python_bench::get();
  build_options options;
  auto shell = python_shell(options);
  REQUIRE(shell);
  auto waiting = runner_process::prepare(*shell, b.loaded.ref, {});
  REQUIRE(waiting);
  const int pid = waiting->pid();
  if (killed) ::kill(pid, SIGKILL);
  shell->kept->prepared = std::make_shared<runner_process>(std::move(*waiting));
  options.shell = &*shell;
  const auto output = build_candidate(module_of("return self.right(x, scale)"), options);
  REQUIRE(output);
  auto runner = runner_process::start(*output, b.loaded.ref, {});
  REQUIRE(runner);
  CHECK(runner->call(0, 1, 1, 20));
  return runner->pid() == pid;
}

} // namespace

TEST_CASE("A process that was started before its candidate was written serves it", "[python]") { CHECK(waiting_process_serves(false)); }

TEST_CASE("A waiting process that died is replaced", "[python]") { CHECK_FALSE(waiting_process_serves(true)); }

TEST_CASE("Results of earlier calls are gone: a device has no memory to spare for them", "[python][alone]") {
  // 4 slots, one more while it is made: more were kept by a cycle that only the collector ends.
  const auto counting = module_of("import gc, weakref; gc.disable(); y = self.right(x, scale)\n"
                                  "        alive = [r for r in self.kept.get('all', []) if r() is not None] + [weakref.ref(y)]\n"
                                  "        self.kept['all'] = alive\n"
                                  "        if len(alive) > 6: raise MemoryError('%d results are kept' % len(alive))\n"
                                  "        return y");
  const auto v = timed(counting);
  INFO(v.reason << "\n" << v.log);
  CHECK_THAT(v.reason, !Contains("results are kept"));
  if (v.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(v.passed());
}

namespace {

/// A stand-in for graphs, which a CPU has not: the operators of one call, replayed without the module. The task's file brings it into both processes.
const char* graphs_on_cpu = R"(import sys
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

class Graph(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs or {}, result))
        return result

    def replay(self):
        made = {}
        now = lambda value: made.get(id(value), value)
        for function, args, kwargs, result in self.calls:
            made[id(result)] = function(*tree_map(now, args), **tree_map(now, kwargs))
        self.result.copy_(made[id(self.source)])

def capture(self, call):
    graph = Graph()
    with graph:
        graph.source = call()
    graph.result = torch.full_like(graph.source, 7.0)
    return graph, graph.result, ""

sys.modules["device"].Device.capture = capture
)";

struct graph_bench {
  loaded_task loaded;
  task_audit audit;
  explicit graph_bench(const std::string& more = "") : loaded(loaded_task::load(graphs_on_cpu + more + python_task)) {
    auto made = audit_task(loaded.task, loaded.ref, {});
    if (!made) FAIL(render(made.error()));
    audit = *made;
  }
  timed_verdict timed(const candidate& c, const timing_options& options) {
    auto result = time_candidate(loaded.task, audit, loaded.ref, made(c), verified(torch_of_stand_ins), options);
    if (!result) FAIL(render(result.error()));
    return *result;
  }
  /// Honest until it is captured, then no longer: the calls that follow on replays must show it, of which a slow machine makes less than 300.
  void found_when_called_again(const std::string& forward) {
    const auto v = timed(module_of(forward), short_timing());
    INFO(v.result.reason);
    CHECK(v.result.stage == verdict_stage::audit);
    CHECK_THAT(v.result.reason, Contains("called again") || Contains("same address")); // on a busy machine more calls come before the replays
  }
};

} // namespace

TEST_CASE("Short calls are timed as graphs, and only what was replayed is asked for its results", "[python][alone]") {
  graph_bench b;
  auto options = short_timing();
  options.sample_seconds = 1e-6; // one call a command: the last leaves the other slots as they are
  const auto v = b.timed(module_of("return self.right(x, scale)"), options);
  INFO(v.result.reason);
  CHECK(v.result.passed());
  CHECK_THAT(v.time.cache, Contains("graphs"));
}

TEST_CASE("Nothing is measured, and nobody accused, on a device that another process works on", "[python][alone]") {
  graph_bench shared("sys.modules['device'].Device.share = lambda self: 0.5\n"
                     "sys.modules['device'].Device.limits = lambda self: {'copy_gbs': [1.0]}\n");
  const auto limits = shared.loaded.ref.limits(true);
  REQUIRE_FALSE(limits); // nor are they kept for later runs
  CHECK(limits.error().code == ec::measurement_failed);
  const auto nobody = time_candidate(shared.loaded.task, shared.audit, shared.loaded.ref, made(module_of("return self.right(x, scale)")),
                                     verified(torch_of_stand_ins), short_timing());
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == ec::measurement_failed);
  CHECK_THAT(nobody.error().message, Contains("another process works on this device"));
}

TEST_CASE("A device's limits that are measured again can only rise, where they are kept as well", "[python]") {
  const char* set = std::getenv("PRAGMA_HOME");
  const std::string before = set ? set : "";
  const auto cache = temp_dir::create("pragma-test-");
  REQUIRE(cache);
  graph_bench b("figures = [{'copy_gbs': [20.0, 1.0], 'peak_gflops': 5.0, 'launch_seconds': 3e-6}, {'copy_gbs': [10.0, 2.0], 'peak_gflops': 7.0, 'launch_seconds': 2e-6}]\n"
                "sys.modules['device'].Device.share = lambda self: 1.0\n"
                "sys.modules['device'].Device.limits = lambda self: figures.pop(0)\n");
  ::setenv("PRAGMA_HOME", cache->path().c_str(), 1);
  const auto first = b.loaded.ref.limits(), again = b.loaded.ref.limits(true), kept = b.loaded.ref.limits();
  set ? ::setenv("PRAGMA_HOME", before.c_str(), 1) : ::unsetenv("PRAGMA_HOME");
  REQUIRE((first && again && kept));
  CHECK(first->copy_gbs == std::vector<double>{20, 1});
  for (const auto* limits : {&*again, &*kept}) {
    CHECK(limits->copy_gbs == std::vector<double>{20, 2});
    CHECK(limits->peak_gflops == 7);
    CHECK(limits->launch_seconds == 2e-6);
  }
}

TEST_CASE("A device that is slow to launch after a copy accuses nobody of keeping answers", "[python][alone]") {
  // As one H200 did, by 25 us: after copies from the host that were waited for.
  graph_bench slow_to_wake(R"(
class Waking(sys.modules['device'].Device):
    def seconds(self, call, calls, flush=True):
        late, self.idle = 1e-3 * self.idle, False
        return super().seconds(call, calls, flush) + late

def waited_for(copying):
    def copied(self, *rest):
        copying(self, *rest)
        self.device.__class__, self.device.idle = Waking, True
    return copied

runner = sys.modules['__main__'].__dict__.get('Runner')
for name in ('upload', '_copy_elsewhere'):
    if runner and hasattr(runner, name):
        setattr(runner, name, waited_for(getattr(runner, name)))
)");
  const auto v = slow_to_wake.timed(module_of("return self.right(x, scale)"), short_timing());
  INFO(v.result.reason);
  CHECK(v.result.stage != verdict_stage::audit); // a busy machine may leave it not established
}

TEST_CASE("What another process does for a moment spoils no measurement", "[python][alone]") {
  graph_bench shared("shares = [0.5]\nsys.modules['device'].Device.share = lambda self: shares.pop() if shares else 1.0\n");
  const auto v = shared.timed(module_of("return self.right(x, scale)"), short_timing());
  INFO(v.result.reason);
  if (v.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(v.result.passed());
}

TEST_CASE("A device that is free once the candidate has ended was busy by it, or by somebody else: nobody is accused", "[python][alone]") {
  graph_bench once("shares = [0.5, 0.5]\nsys.modules['device'].Device.share = lambda self: shares.pop() if shares else 1.0\n");
  const auto again = once.timed(module_of("return self.right(x, scale)"), short_timing()); // looked at again
  INFO(again.result.reason);
  if (again.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(again.result.passed());
  graph_bench always("import itertools\nshares = itertools.cycle([0.5, 0.5, 1.0])\nsys.modules['device'].Device.share = lambda self: next(shares)\n");
  const auto v = always.timed(module_of("return self.right(x, scale)"), short_timing());
  CHECK(v.result.stage == verdict_stage::not_established); // and gains nothing
  CHECK(v.result.why_not == doubt::machine_busy);
  CHECK_THAT(v.result.reason, Contains("works in the background, or somebody else"));
}

TEST_CASE("What a module does in calls that follow on replays is checked as well", "[python][alone]") {
  graph_bench().found_when_called_again("self.calls += 1\n"
                                        "        if self.calls < 60 or x.data_ptr() not in self.kept: self.kept[x.data_ptr()] = self.right(x, scale)\n"
                                        "        return self.kept[x.data_ptr()]");
}

TEST_CASE("A module that puts another into its runner during replays is found", "[python][alone]") {
  graph_bench().found_when_called_again("self.calls += 1\n"
                                        "        if self.calls == 60:\n"
                                        "            import sys\n"
                                        "            kept = {}\n"
                                        "            def lazy(z, other):\n"
                                        "                if z.data_ptr() not in kept: kept[z.data_ptr()] = self.right(z, other)\n"
                                        "                return kept[z.data_ptr()]\n"
                                        "            frame = sys._getframe()\n"
                                        "            while type(frame.f_locals.get('self')).__name__ != 'Runner': frame = frame.f_back\n"
                                        "            frame.f_locals['self'].model = lazy\n"
                                        "        return self.right(x, scale)");
}

namespace {

/// Becomes true once the candidate has written the file "here" to its folder.
class cancel_when_here {
public:
  explicit cancel_when_here(const build_output& output) : watch_([this, file = output.scratch / "here"] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    std::error_code ignored;
    while (!std::filesystem::exists(file, ignored) && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel = true;
  }) {}
  ~cancel_when_here() { watch_.join(); }
  std::atomic<bool> cancel = false;

private:
  std::thread watch_;
};

} // namespace

TEST_CASE("Waiting for a module that hangs can be cancelled, in its first call and in any other", "[python]") {
  auto& b = python_bench::get();
  const auto hangs_in = [](const char* call) {
    return module_of(std::string("self.calls += 1\n        if self.calls == ") + call + ":\n            open('here', 'w').close()\n            while True: time.sleep(1)\n"
                     "        return self.right(x, scale)");
  };
  {
    const auto output = made(hangs_in("1"));
    cancel_when_here watch(output);
    runner_options options;
    options.cancel = &watch.cancel;
    const auto runner = runner_process::start(output, b.loaded.ref, options);
    REQUIRE(!runner);
    CHECK(runner.error().code == ec::interrupted);
  }
  const auto output = made(hangs_in("2"));
  cancel_when_here watch(output);
  verify_options options;
  options.cancel = &watch.cancel;
  options.allow_torch = true;
  const auto v = verify(b.loaded.task, b.audit, b.loaded.ref, output, options);
  REQUIRE(!v);
  CHECK(v.error().code == ec::interrupted);
}

TEST_CASE("A module that ends its process takes its children along, though they hold its end of the pipe", "[python]") {
  auto& b = python_bench::get();
  const auto output = made(module_of(R"(pid = os.fork()
        if pid == 0:
            while True: time.sleep(1)
        with open('child', 'w') as f: f.write(str(pid))
        os._exit(3))"));
  const auto runner = runner_process::start(output, b.loaded.ref, {});
  REQUIRE(!runner);
  CHECK(runner.error().code == ec::candidate_failed);
  CHECK_THAT(runner.error().message, Contains("exit code 3"));
  const auto child = read_file(output.scratch / "child");
  REQUIRE(child);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto gone = [&] { // or dead, where nobody reaps it
    const auto state = read_file("/proc/" + *child + "/stat");
    return !state || state->find(") Z ") != std::string::npos || state->find("python") == std::string::npos;
  };
  while (!gone() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(gone());
}

TEST_CASE("A kept process that died, or has used half of its CPU time, is replaced", "[python]") {
  auto& b = python_bench::get();
  const auto output = made(module_of("return self.right(x, scale)"));
  verify_options options;
  options.allow_torch = true;
  const auto passes = [&] {
    const auto v = verify(b.loaded.task, b.audit, b.loaded.ref, output, options);
    REQUIRE(v);
    INFO(v->reason);
    CHECK(v->passed());
    REQUIRE(output.kept->runner);
    return output.kept->runner->pid();
  };
  const int first = passes();
  CHECK(passes() == first);
  ::kill(first, SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (output.kept->runner->usable() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int second = passes();
  CHECK(second != first);
  runner_options little;
  little.cpu_seconds = 12;
  const auto busy = made(module_of("while time.process_time() < 6.5: pass\n        return self.right(x, scale)"));
  auto spent = runner_process::start(busy, b.loaded.ref, little);
  if (!spent) FAIL(render(spent.error()));
  CHECK_FALSE(spent->usable());
}

TEST_CASE("The limit of a command leaves room for slow kernels, and none for one that never ends", "[python]") {
  for (const double reference : {1e-5, 0.01, 0.2, 1.0, 10.0}) {
    INFO(reference);
    const call_limit limit{reference, std::min(std::max(20.0, 100 * reference), std::max(30.0, 3 * reference))};
    const auto look = limit.few(40, 4);
    CHECK(look >= 4);
    CHECK(limit.of(look, look) > 3 * reference * static_cast<double>(look)); // three times slower than the reference
    CHECK(limit.of(5'000'000, look) < 200);
  }
  CHECK(call_limit{1e-3, 20}.few(40, 4) == 40);
}

TEST_CASE("Timing against the reference finds honest modules honest", "[python][alone]") {
  const auto v = timed(module_of("return self.right(x, scale)"));
  INFO(v.reason);
  if (v.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(v.passed());
  CHECK(v.checked.size() >= 3);
}
