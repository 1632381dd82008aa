// What hostile modules try, and what comes of it: each promise of docs/devices.md is attacked here, with the CPU standing in for a device.
// bench/gpu/hostile has the attacks that need one.
#include "open_house.hpp"

using namespace pragma;
using namespace pragma::test;
using Catch::Contains;

TEST_CASE("A module has no permission that it does not need", "[python]") {
  open_house house;
  const auto before = with(with(attempts, "@HOUSE@", house.folder.path().string()), "@PORT@", std::to_string(house.port));
  const auto v = judge(module_of("if not self.calls: self.calls = 1; try_all()\n        if allowed: raise RuntimeError('could: ' + ', '.join(allowed))\n"
                                 "        return self.right(x, scale)",
                                 before));
  INFO(v.reason << "\n" << v.log);
  CHECK(v.passed());
  CHECK_FALSE(std::filesystem::exists(house.folder.path() / "from-a-shell"));
}

TEST_CASE("A module that behaves in the runner has no more in the drop-in's check", "[python]") {
  open_house house;
  const auto before = with(with(attempts, "@HOUSE@", house.folder.path().string()), "@PORT@", std::to_string(house.port));
  const auto c = module_of("if IN_CHECK and not self.calls: self.calls = 1; try_all(); attempt('environment', lambda: 'PRAGMA_TEST_SECRET' in os.environ)\n"
                           "        if allowed: raise RuntimeError('could: ' + ', '.join(allowed))\n        return self.right(x, scale)",
                           before + "IN_CHECK = RUNNER.endswith('check_drop_in.py')\n");
  const auto v = judge(c);
  INFO(v.reason);
  REQUIRE(v.passed());
  auto folder = temp_dir::create("drop-in-");
  REQUIRE(folder);
  candidate code;
  code.language = c.language;
  code.source = c.source;
  const auto& t = python_bench::get().loaded.task;
  REQUIRE(write_drop_in(folder->path(), t, code, 1));
  drop_in_options options;
  options.language = c.language;
  ::setenv("PRAGMA_TEST_SECRET", "sk-1234", 1);
  const auto said = check_drop_in(folder->path(), t, options);
  ::unsetenv("PRAGMA_TEST_SECRET");
  if (!said) FAIL_CHECK(render(said.error()));
  CHECK_FALSE(std::filesystem::exists(house.folder.path() / "from-a-shell"));
}

TEST_CASE("Under a device's profiler a module reaches little more", "[python]") {
  open_house house;
  auto& b = python_bench::get();
  const auto before = with(with(attempts, "@HOUSE@", house.folder.path().string()), "@PORT@", std::to_string(house.port));
  // What the profiler itself needs; signals are Landlock's business, from Linux 6.12.
  const auto output = made(module_of("try_all()\n        more = set(allowed) - {'netlink', 'local service', 'local datagram', 'raw local datagram', 'datagram pair', "
                                     "'raw pair', 'write /dev/shm', 'signal to parent', 'signal to all', 'tgkill'}\n        if more: raise RuntimeError('could: ' + ', '.join(more))\n"
                                     "        return self.right(x, scale)",
                                     before));
  REQUIRE(runner_process::start(output, b.loaded.ref, {})); // profilers come after the verification
  auto scratch = temp_dir::create("pragma-test-", 0711);
  REQUIRE(scratch);
  runner_options options;
  options.wrapper = {"/usr/bin/env"}; // the simplest program that runs another
  options.scratch = scratch->path();
  auto started = runner_process::start(output, b.loaded.ref, options);
  if (!started) FAIL(render(started.error()));
  CHECK(started->finish(30).empty());
  CHECK_FALSE(std::filesystem::exists(house.folder.path() / "from-a-shell"));
}

TEST_CASE("Answers that a module gives in the runner's place are not believed", "[python]") {
  // Twice, the second time when nobody asked.
  auto v = judge(module_of(taken, takeover("    os.write(4, reply.pack(1, 0, 0.0))")));
  CHECK_FALSE(v.passed());
  v = judge(module_of(taken, takeover("    runner.handle = lambda nonce, *rest: reply.pack(nonce, 0, 0.0)")));
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::compare);
  v = judge(module_of(taken, takeover("    runner.handle = lambda *command: reply.pack(0, 0, 0.0)")));
  CHECK_THAT(v.reason, Contains("forged an answer"));
  // Ready before anything ran, and never again.
  v = judge(module_of("return self.right(x, scale)", "import os, struct, time\nos.write(4, struct.pack('=QQd', 0x7072616764793031, 0, 0.0))\n"));
  INFO(v.reason);
  CHECK_FALSE(v.passed());
}

TEST_CASE("Calls that go on after their answer are found out", "[python][alone]") {
  const auto v = timed(module_of(taken, takeover(R"(
    def early(nonce, first, count, calls, operation, flags):
        if operation == 2:
            os.write(4, reply.pack(nonce, 0, 0.0))
            handle(nonce, first, count, calls, operation, flags)
            return b""
        return handle(nonce, first, count, calls, operation, flags)
    runner.handle = early)")));
  INFO(v.reason);
  CHECK_FALSE(v.passed());
  if (v.reason.find("did not come back") != std::string::npos) return test::skip("the machine was too busy for the call to end in time"); // refused, for that
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("before they are"));
}

TEST_CASE("Calls that are left out among many are found out", "[python][alone]") {
  // The last ones of a batch are made, since their results are looked at; of eight or fewer all are. So a sample has to last longer than eight calls on any machine.
  auto long_samples = short_timing();
  long_samples.sample_seconds = 0.03;
  const auto v = timed_build(made(module_of("return lazily(self, x, scale)", R"(import sys
kept = {}
def lazily(model, x, scale):
    number, calls, frame = None, None, sys._getframe(1)
    while frame is not None:
        number = frame.f_locals.get("i") if number is None else number
        calls = frame.f_locals.get("calls") if calls is None else calls
        frame = frame.f_back
    if isinstance(number, int) and isinstance(calls, int) and number < calls - 8 and x.data_ptr() in kept:
        return kept[x.data_ptr()]
    kept[x.data_ptr()] = model.right(x, scale)
    return kept[x.data_ptr()]
)")), torch_of_stand_ins, long_samples).result;
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("leaves out calls"));
}

TEST_CASE("The runner is not where a module looks for it first", "[python]") {
  const auto v = judge(module_of("return self.right(x, scale)", R"(import gc, sys
found = [type(o).__name__ for o in gc.get_objects() if type(o).__name__ in ("Runner", "Device", "OperatorRecord")]
found += [n for n in ("Runner", "OperatorRecord") if hasattr(sys.modules["__main__"], n)]
for name in ("device", "operator_record", "taskfile", "candidate_runner"):
    try:
        __import__(name)
        found.append(name)
    except ImportError:
        pass
assert not found, found
)"));
  INFO(v.reason);
  CHECK(v.passed());
}

TEST_CASE("Work for Torch is seen in every call that is checked, and after timing", "[python][alone]") {
  const auto sees = [](const candidate& c, const char* what) {
    const auto v = judge(c, false);
    INFO(v.reason);
    CHECK(v.stage == verdict_stage::audit);
    CHECK_THAT(v.reason, Contains(what));
  };
  // The first call of each command is spotless. (A stand-in that calls nothing: the right answer comes from NumPy.)
  const auto honest = judge(module_of("return by_hand(self, x, scale)", numpy), false);
  INFO(honest.reason);
  REQUIRE(honest.passed());
  sees(module_of("self.calls += 1\n        return by_hand(self, x, scale) if self.calls < 8 else self.right(x, scale)", numpy), "tanh");
  // Records that are replaced.
  sees(module_of("return self.right(x, scale)", "import torch\ntorch.autograd.profiler.profile.key_averages = lambda *a, **k: []\n"
                                                "torch.autograd._disable_profiler = lambda: None\ntorch.autograd._enable_profiler = lambda *a: None\n"),
       "tanh");
  const auto off = judge(module_of("torch.autograd._disable_profiler() if self.calls else None; self.calls += 1; return self.right(x, scale)"), false);
  CHECK_THAT(off.reason, Contains("switched Torch's record of operators off"));
  const auto blind = judge(module_of("torch._C._autograd._enable_record_function(False); return self.right(x, scale)"), false);
  CHECK_THAT(blind.reason, Contains("switched Torch's record of operators off"));
  // Spotless while it is verified, and Torch later.
  const auto v = timed(module_of("return self.right(x, scale)"), {});
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh") && Contains("not while it was verified"));
}

TEST_CASE("Work that a module hid in a graph before it was watched is named", "[python]") {
  // A stand-in for graphs, which a CPU has not: the task's file brings it into both processes.
  loaded_task loaded = loaded_task::load(std::string("import torch\nclass Graph:\n    def capture_begin(self, *pool, **more): pass\n    def capture_end(self): pass\n"
                                                     "torch._C._CUDAGraph = Graph\n") + python_task);
  const auto audit = audit_task(loaded.task, loaded.ref, {});
  REQUIRE(audit);
  const auto verdict_on = [&](const std::string& captured) {
    verify_options options;
    options.seeds = 1;
    auto result = verify(loaded.task, *audit, loaded.ref,
                         made(module_of("if not self.calls: self.calls, g = 1, torch._C._CUDAGraph(); g.capture_begin(); " + captured + "; g.capture_end()\n"
                                        "        return by_hand(self, x, scale)",
                                        numpy)),
                         options);
    if (!result) FAIL(render(result.error()));
    INFO(result->reason);
    return *result;
  };
  CHECK(verdict_on("by_hand(self, x, scale)").passed());
  const auto v = verdict_on("self.right(x, scale)");
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh") && Contains("to Torch"));
}

TEST_CASE("Work for Torch in another thread is seen where Torch can look there", "[python]") {
  process_spec spec;
  spec.argv = {made(module_of("return self.right(x, scale)")).executable.string(), "-c", "import torch\ntorch._C._profiler._ExperimentalConfig(profile_all_threads=True)"};
  spec.limits.wall_seconds = 60;
  const auto can = run_process(spec);
  REQUIRE(can);
  if (!can->ok()) {
    skip("this Torch records one thread only (needs 2.8)");
    return;
  }
  const auto v = judge(module_of("import threading\n        t = threading.Thread(target=lambda: self.kept.update(y=self.right(x, scale)))\n"
                                 "        t.start(); t.join(); return self.kept['y']"),
                       false);
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("tanh"));
}

TEST_CASE("Its command line does not tell a module that a profiler is there, and autotuners choose once", "[python]") {
  auto& b = python_bench::get();
  const auto output = made(module_of(R"(tuner.run(x, grid=(1,))
        if not os.path.exists("argv"):
            assert not tuner.runs and not tuner.cache_results, "it was tuned beside others"
            with open("argv", "w") as f: f.write(repr(sys.argv))
        else:
            with open("argv") as f: assert f.read() == repr(sys.argv), "the command line tells"
            assert tuner.runs and tuner.cache_results, "what was chosen is not used"
        return self.right(x, scale))",
                                     R"(class Tuner:
    def __init__(self): self.cache, self.cache_results, self.runs = {}, False, 0
    def warmup(self, *args, grid, **options): pass
    def run(self, *args, grid, **options): self.runs += 1
tuner = Tuner()
)"));
  const auto first = runner_process::start(output, b.loaded.ref, {});
  if (!first) FAIL(render(first.error()));
  auto scratch = temp_dir::create("pragma-test-", 0711);
  REQUIRE(scratch);
  runner_options options;
  options.wrapper = {"/usr/bin/env"};
  options.scratch = scratch->path();
  auto profiled = runner_process::start(output, b.loaded.ref, options);
  if (!profiled) FAIL(render(profiled.error()));
  CHECK(profiled->finish(30).empty());
}

TEST_CASE("Inputs that were written to are noticed, whatever its process says of them", "[python]") {
  CHECK_THAT(judge(module_of("y = self.right(x, scale); x.add_(1); return y", "import torch\ntorch.equal = lambda a, b: True\n")).reason,
             Contains("changed its inputs"));
  const auto v = judge(module_of("take_over(); y = self.right(x, scale); x.add_(1); return y", takeover("    runner._changed = lambda *slots: False")));
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::compare);
}

TEST_CASE("Timing finds tricks out", "[python][alone]") {
  // Every second call gives what the one before gave.
  auto v = timed(module_of("self.calls += 1\n        if self.calls % 2 == 0: return self.last\n        self.last = self.right(x, scale); return self.last"));
  CHECK(!v.passed());
  // Answers are kept by the contents of the inputs.
  v = timed(module_of("k = float(x.sum())\n        if k not in self.kept: time.sleep(0.005); self.kept[k] = self.right(x, scale)\n        return self.kept[k].clone()"));
  INFO(v.reason);
  CHECK(v.stage == verdict_stage::audit);
  CHECK_THAT(v.reason, Contains("keeps answers"));
  // The clock of its process stands still while it works.
}

TEST_CASE("A clock that was patched gains nothing, as ours counts", "[python][alone]") {
  // The clock of its process stands still while it works. Launches from Python on a slow host look the same, so nobody is accused.
  const auto result = timed_build(made(module_of("self.t = getattr(self, 't', time.perf_counter); y = self.right(x, scale); s = self.t()\n        while self.t() - s < 0.003: pass\n"
                                                 "        time.perf_counter = lambda: 0.0001 * self.calls; self.calls += 1\n"
                                                 "        return y")));
  INFO(result.result.reason);
  if (result.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(result.result.passed());
  CHECK_THAT(result.time.cache, Contains("our clock"));
  CHECK(result.time.candidate_seconds >= 0.003);
}

TEST_CASE("A clock that stands still does not hold the device for hours", "[python]") {
  auto& b = python_bench::get();
  const auto output = made(module_of(taken, takeover(R"(
    def slow(nonce, first, count, calls, operation, flags):
        if operation != 3:
            return handle(nonce, first, count, calls, operation, flags)
        if calls <= 40:
            handle(nonce, first, count, calls, operation, flags)
        else:
            time.sleep(10)
        if not hasattr(runner, "looked"):
            runner.looked = True
            return reply.pack(nonce, 0, 1e-4 * calls)
        return reply.pack(nonce, 0, 0.0)
    runner.handle = slow)")));
  verdict earlier;
  earlier.stage = verdict_stage::passed;
  timing_options options;
  options.max_seconds = 0.05;
  const auto result = time_candidate(b.loaded.task, b.audit, b.loaded.ref, output, earlier, options);
  REQUIRE(!result);
  CHECK(result.error().code == ec::measurement_failed);
  CHECK_THAT(result.error().message, Contains("no measurement within"));
}

TEST_CASE("What launches do not explain is timed by our clock", "[python][alone]") {
  // By the clock of its process each call takes 60 us, by ours 180. Launches of an honest module could take the rest, so it is not refused.
  const auto slow = made(module_of("s = true_clock(); y = self.right(x, scale)\n        while true_clock() - s < 180e-6: pass\n        return y",
                                   R"(import time
true_clock, ticks = time.perf_counter, [0.0]
def clock():
    ticks[0] += 60e-6
    return ticks[0]
time.perf_counter = clock
)"));
  const auto result = timed_build(slow);
  INFO(result.result.reason);
  if (result.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(result.result.passed());
  CHECK_THAT(result.time.cache, Contains("our clock"));
  CHECK(result.time.candidate_seconds >= 170e-6);
  // Beside another candidate, too.
  const auto honest = made(module_of("return self.right(x, scale)"));
  auto& bench = python_bench::get();
  const auto both = compare_candidates(bench.loaded.task, bench.audit, bench.loaded.ref, slow, honest, short_timing());
  REQUIRE(both);
  INFO(both->result.reason);
  CHECK(both->failed == failed_side::none);
  CHECK_THAT(both->time.cache, Contains("our clock"));
  CHECK(both->time.candidate_seconds >= 170e-6);
}

TEST_CASE("Children that would keep the cores busy while the reference is timed stand still then", "[python][alone]") {
  const auto honest = timed_build(made(module_of("return self.right(x, scale)")));
  if (honest.result.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  REQUIRE(honest.result.passed());
  const auto busy = timed_build(made(module_of(R"(if not self.calls:
            self.calls, parent = 1, os.getpid()
            for _ in range(4):
                if os.fork() == 0:
                    end = time.monotonic() + 60
                    while os.getppid() == parent and time.monotonic() < end: pass
                    os._exit(0)
        return self.right(x, scale))")));
  INFO(busy.result.reason);
  // They are stopped with their parent: what they slow down is the candidate itself, by so much that its figure may say nothing.
  if (busy.result.passed() && (busy.time.contended || honest.time.contended)) test::skip("others slowed the reference down as well");
  else if (busy.result.passed()) CHECK(busy.time.baseline_seconds < 1.5 * honest.time.baseline_seconds);
  else CHECK((busy.result.stage == verdict_stage::audit || busy.result.why_not == doubt::machine_busy));
}

TEST_CASE("The CPU time of a session holds its children's", "[python][alone]") {
  process_spec spec;
  spec.argv = {"/bin/sh", "-c", "(while :; do :; done) & read line"};
  auto child = child_process::start(spec);
  REQUIRE(child);
  // The shell itself waits; its child works until the session has 0.1 s.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (session_cpu_seconds(child->pid()) < 0.1 && std::chrono::steady_clock::now() < deadline) ::usleep(10'000);
  CHECK(session_cpu_seconds(child->pid()) >= 0.1);
  CHECK(cpu_seconds(child->pid()) < 0.1);
  child->kill();
}

TEST_CASE("A first call that never returns has a limit of its own", "[python][alone]") {
  auto& b = python_bench::get();
  const auto output = made(module_of("while True: time.sleep(1)"));
  runner_options options;
  options.first_call_seconds = 2;
  const auto started = runner_process::start(output, b.loaded.ref, options);
  REQUIRE(!started);
  CHECK(started.error().code == ec::timeout);
  CHECK_THAT(started.error().message, Contains("within 2") && Contains("called for the first time"));
}

TEST_CASE("A module that is slow to load is not called wrong", "[python][alone]") {
  auto& b = python_bench::get();
  verify_options options;
  options.load_seconds = 2;
  const auto v = verify(b.loaded.task, b.audit, b.loaded.ref, made(module_of("time.sleep(4); return self.right(x, scale)")), options);
  REQUIRE(v);
  CHECK(v->stage == verdict_stage::not_established);
  CHECK(v->why_not == doubt::our_limit);
  CHECK_THAT(v->reason, Contains("within 2") && Contains("slow to load"));
}

TEST_CASE("A process in which nothing of the candidate has run yet is not the candidate's fault", "[python]") {
  auto& b = python_bench::get();
  auto output = made(module_of("return self.right(x, scale)"));
  output.device.backend = "cuda"; // which this test must not find: a device beyond any
  output.device.index = 99;
  const auto started = runner_process::start(output, b.loaded.ref, {});
  REQUIRE(!started);
  CHECK(started.error().code == ec::tool_failed);
}
