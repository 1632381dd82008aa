// The workbench on a made-up device, which is Torch's CPU under another name: what failing candidates, full devices and cancels do to a run,
// and whose processes are there when.
#include "tests/fixtures/skip.hpp"
#include "tests/fixtures/python_fixture.hpp"
#include "actors/workbench.hpp"
#include "actors/as_called.hpp"
#include "base/text.hpp"
#include "cluster/node_bench.hpp"
#include "reference/call_limit.hpp"
#include "devices/device_lease.hpp"
#include "kernels/parts.hpp"

#include <csignal>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace pragma;
using Catch::Contains;
using test::module_of;
namespace fs = std::filesystem;

namespace {

/// Everything that is shipped, and one backend more. Set up before anybody asks for backends.
const temp_dir& share_with_stand_in() {
  static const temp_dir folder = [] {
    auto made = std::move(*temp_dir::create("pragma-test-share-", 0711));
    for (const auto& entry : fs::directory_iterator(share_dir()))
      if (entry.path().filename() != "backends") fs::create_symlink(entry.path(), made.path() / entry.path().filename());
    fs::copy(share_dir() / "backends", made.path() / "backends");
    std::ofstream(made.path() / "backends" / "stand_in.json") << R"({"name": "stand_in", "title": "stand-in", "language": "triton", "torch_device": "cpu"})";
    ::setenv("PRAGMA_SHARE", made.path().c_str(), 1);
    return made;
  }();
  return folder;
}

/// Children of this program whose command line has this script in it.
std::vector<pid_t> processes(const std::string& script) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto state = read_file(entry.path() / "stat"), line = read_file(entry.path() / "cmdline");
    if (!state || !line || line->find(script) == std::string::npos) continue;
    char letter = 0;
    int parent = 0;
    const auto end = state->rfind(") ");
    if (end != std::string::npos && std::sscanf(state->c_str() + end + 2, "%c %d", &letter, &parent) == 2 && parent == ::getpid() && letter != 'Z')
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}
std::vector<pid_t> candidates() { return processes("candidate_runner.py"); }

void kill_candidates() {
  for (const auto pid : candidates()) {
    ::kill(pid, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT); // all of its threads; it is the runner's to reap
  }
}

void passes_beside_the_best(const expected<measurement>& m) {
  if (!m) FAIL(render(m.error()));
  INFO(m->verdict.reason);
  CHECK(m->verdict.passed());
  CHECK(m->compared);
}

struct loaded_bench {
  temp_dir folder = std::move(*temp_dir::create("pragma-test-"));
  std::atomic<bool> cancel = false;
  workbench work;
  pragma::loaded_task loaded;

  explicit loaded_bench(const std::string& task = test::python_task, bool more_follow = true, bool call_drop_in = true) : work(&cancel, more_follow) {
    share_with_stand_in();
    REQUIRE(write_file_atomic(folder.path() / "task.py", task));
    load_request request;
    request.path = (folder.path() / "task.py").string();
    request.backend = "stand_in";
    request.seeds = 2;
    request.allow_torch = true;
    request.call_drop_in = call_drop_in;
    auto answer = work.load(request);
    if (!answer) FAIL(render(answer.error()));
    loaded = *answer;
  }
  verdict verify(const candidate& c) {
    auto v = work.verify(c);
    if (!v) FAIL(render(v.error()));
    INFO(v->reason << "\n" << v->log);
    REQUIRE(v->passed());
    return *v;
  }
  /// Verified, and measured beside `best`, whose speed-up is said to be 1.
  expected<measurement> measure(const candidate& c, const verdict& v, const candidate* best = nullptr) {
    measure_request request;
    request.candidate = c;
    request.verdict = v;
    request.profile = false;
    if (best) {
      request.has_best = true;
      request.best = *best;
      request.best_speedup = {0.1, 0.1, 0.1}; // slow enough that every challenger is compared
    }
    return work.measure(request);
  }
};

load_request on_stand_in() {
  load_request request;
  request.backend = "stand_in";
  request.allow_torch = true;
  return request;
}

/// Different texts are different candidates.
candidate honest(int number) { return module_of("return self.right(x, scale) # " + std::to_string(number)); }

} // namespace

TEST_CASE("Parts of a task have no figure where their drop-in may not be called: no quieter machine helps", "[workbench]") {
  loaded_bench b(test::python_task, true, false);
  candidate c;
  c.language = parts_language;
  const auto refused = b.work.confirm(c);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ec::unsupported);
  CHECK(refused.error().hint == "leave --no-check away");
}

TEST_CASE("A challenger that dies beside the best is refused, and the next one is compared", "[workbench][alone]") {
  loaded_bench b;
  const auto best = honest(1);
  REQUIRE(b.measure(best, b.verify(best)));
  // It passes and is timed, and dies in the first call after that: verification and the audit after timing are recorded, timing is not.
  const auto dies = module_of(R"(self.calls += 1
        recorded = torch._C._autograd._profiler_enabled()
        seen = self.kept.setdefault('seen', [])
        if not seen or seen[-1] != recorded: seen.append(recorded)
        if len(seen) == 5 or os.path.exists('died') and self.calls > 1:
            open('died', 'w').close()
            os._exit(7)
        return self.right(x, scale))");
  const auto v = b.verify(dies);
  const auto refused = b.measure(dies, v, &best);
  if (!refused) FAIL(render(refused.error()));
  INFO(refused->verdict.reason);
  CHECK(refused->verdict.stage == verdict_stage::run);
  // On a busy machine it is timed a second time before anything is compared, and dies there.
  CHECK_THAT(refused->verdict.reason, Contains("exit code 7") && (Contains("beside the best") || Contains("while it was timed")));
  CHECK_FALSE(refused->compared);
  const auto next = honest(2);
  const auto nv = b.verify(next);
  const auto m = b.measure(next, nv, &best);
  passes_beside_the_best(m);
}

TEST_CASE("Processes that died while they waited are replaced, the best's too", "[workbench][alone]") {
  loaded_bench b;
  const auto best = honest(1), next = honest(2);
  REQUIRE(b.measure(best, b.verify(best)));
  const auto v = b.verify(next);
  kill_candidates();
  const auto m = b.measure(next, v, &best);
  passes_beside_the_best(m);
}

TEST_CASE("A best that cannot be started again is compared with by way of the reference", "[workbench][alone]") {
  loaded_bench b;
  const auto best = module_of("return self.right(x, scale)", "import os\nassert not os.path.exists('started')\nopen('started', 'w').close()\n");
  REQUIRE(b.measure(best, b.verify(best)));
  const auto next = honest(2);
  const auto v = b.verify(next);
  kill_candidates();
  const auto m = b.measure(next, v, &best);
  if (!m) FAIL(render(m.error()));
  INFO(m->verdict.reason);
  CHECK(m->verdict.passed());
  CHECK_FALSE(m->compared);
  CHECK(m->against_best.speedup.value > 0);
  CHECK_THAT(m->against_best.note, Contains("side by side"));
}

TEST_CASE("Nobody starts a process that nobody needs", "[workbench][alone]") {
  {
    loaded_bench b(test::python_task, true, false);
    const auto best = honest(1);
    b.verify(best);
    CHECK(candidates().size() == 2); // its own, and one for who comes next
    const auto confirmed = b.work.confirm(best);
    if (!confirmed) FAIL(render(confirmed.error()));
    CHECK(candidates().empty()); // the device is left to the drop-in
  }
  loaded_bench alone(test::python_task, false);
  alone.verify(honest(1));
  CHECK(candidates().size() == 1);
}

TEST_CASE("A confirmation takes over what Triton has compiled of the same module, and nothing else that the search's process left", "[workbench][alone]") {
  loaded_bench b(test::python_task, true, false);
  const auto confirmed = [&](const std::string& wrong) {
    const auto c = module_of("return x if " + wrong + " else self.right(x, scale)", R"(import os
cache = os.environ["TRITON_CACHE_DIR"] + "/entry"
os.makedirs(cache, exist_ok=True)
compiled_before, left_before = os.path.exists(cache + "/kept"), os.path.exists("kept")
for place in (cache + "/kept", "kept"):
    open(place, "w").close()
)");
    b.verify(c);
    auto result = b.work.confirm(c);
    if (!result) FAIL(render(result.error()));
    return *result;
  };
  CHECK(confirmed("compiled_before").verdict.stage == verdict_stage::compare);
  const auto other = confirmed("left_before");
  INFO(other.verdict.reason);
  if (other.verdict.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(other.verdict.passed());
}

TEST_CASE("Where the device is full, the processes of other candidates make room", "[workbench][alone]") {
  // A device that holds one candidate: a second one's process fails before anything of the candidate's has run.
  const std::string full = std::string(R"(import os, sys
def siblings():
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/stat" % name) as state, open("/proc/%s/cmdline" % name) as line:
                    text = state.read().rsplit(") ", 1)[1].split()
                    found += text[0] != "Z" and int(text[1]) == os.getppid() and "candidate_runner.py" in line.read()
            except OSError:
                pass
    return found
if sys.argv[0].endswith("candidate_runner.py") and siblings() >= 1:
    raise RuntimeError("the device is out of memory")
)") + test::python_task;
  loaded_bench b(full);
  const auto best = honest(1);
  REQUIRE(b.measure(best, b.verify(best)));
  for (int number : {2, 3}) {
    const auto c = honest(number);
    const auto v = b.verify(c); // the best's process is there
    const auto m = b.measure(c, v, &best);
    if (!m) FAIL(render(m.error()));
    INFO(m->verdict.reason);
    CHECK(m->verdict.passed());
    CHECK_FALSE(m->compared); // nowhere to be run side by side
    CHECK(m->against_best.speedup.value > 0);
  }
}

TEST_CASE("A drop-in to which the device had no memory left to give is not called wrong", "[workbench][alone]") {
  loaded_bench b;
  const auto c = module_of("if sys.argv[0].endswith('check_drop_in.py'): raise MemoryError('of the device')\n        return self.right(x, scale)");
  const auto confirmed = b.work.confirm(c);
  if (!confirmed) FAIL(render(confirmed.error()));
  INFO(confirmed->verdict.reason);
  CHECK(confirmed->verdict.stage == verdict_stage::not_established);
  if (confirmed->verdict.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy");
  CHECK(confirmed->verdict.why_not == doubt::out_of_memory);
  CHECK_THAT(confirmed->verdict.reason, Catch::Contains("as a drop-in") && Catch::Contains("of the device"));
}

TEST_CASE("A drop-in that makes Torch slow in the process of both is held against Torch as it was before", "[workbench][alone]") {
  loaded_bench b;
  const auto c = module_of("return self.right(x, scale)", R"(import sys, time, torch
if sys.argv[0].endswith('check_drop_in.py'):
    def late(self, *inputs, its=torch.nn.Module.__call__):
        if type(self).__name__ == 'Model': time.sleep(0.02)
        return its(self, *inputs)
    torch.nn.Module.__call__ = late
)");
  const auto confirmed = b.work.confirm(c);
  if (!confirmed) FAIL(render(confirmed.error()));
  INFO(confirmed->verdict.reason << confirmed->not_called);
  if (confirmed->verdict.why_not == doubt::machine_busy) return test::skip("other work kept the machine busy: " + confirmed->verdict.reason);
  REQUIRE(confirmed->verdict.passed());
  REQUIRE(confirmed->as_called);
  CHECK(confirmed->time.baseline_seconds < 0.01);
  CHECK_THAT(confirmed->time.note, Contains("beside the drop-in, and counts as it was by itself"));
}

TEST_CASE("A call that its own process says to be far shorter than the kernel is not possible", "[workbench]") {
  timing called, kernel;
  kernel.candidate_seconds = 10e-6;
  const auto said = [&](double seconds, bool flushed, const char* cache) {
    called.candidate_seconds = seconds;
    kernel.cache = cache;
    return possible(called, flushed, kernel);
  };
  const char* graphs = "flushed; graphs replayed, the device's events";
  CHECK(said(9e-6, true, graphs));
  CHECK_FALSE(said(6e-6, true, graphs)); // who patches the clock of that process gains little
  CHECK(said(6e-6, false, graphs));      // calls back to back find their inputs in a cache
  CHECK(said(6e-6, true, "warm"));
  CHECK_FALSE(said(2e-6, false, graphs));
}

TEST_CASE("Another run of a node leaves the device when its room is needed", "[workbench]") {
  share_with_stand_in();
  auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  node_bench node("n", folder->path() / "tasks");
  work_order order;
  order.kind = "load";
  order.load.backend = "stand_in";
  order.load.seeds = 2;
  order.load.allow_torch = true;
  order.run = "first";
  order.task = {"first.py", test::python_task, ""};
  auto answer = node.perform(order, "stand_in:0");
  INFO(answer.failure.what().message);
  REQUIRE_FALSE(answer.failure.happened());
  const auto references = processes("reference.py");
  REQUIRE(references.size() == 1);
  // The second run's candidates find no room while the first run's reference is there.
  order.run = "second";
  order.task = {"second.py",
                "import os, sys\nif sys.argv[0].endswith('candidate_runner.py') and os.path.exists('/proc/" + std::to_string(references.front()) +
                    "'):\n    raise RuntimeError('the device is out of memory')\n" + test::python_task,
                ""};
  order.kind = "verify";
  order.candidate = honest(1);
  answer = node.perform(order, "stand_in:0");
  INFO(answer.failure.what().message);
  REQUIRE_FALSE(answer.failure.happened());
  CHECK(answer.result.value("stage", "") == "passed");
}

TEST_CASE("A kernel that was timed while the machine was slow is timed again before its drop-in is not believed", "[workbench][alone]") {
  loaded_bench b;
  const auto request = on_stand_in();
  const auto winner = write_winner(b.loaded.task, honest(1), request, nullptr);
  if (!winner) FAIL(render(winner.error()));
  confirmation slow;
  slow.verdict.stage = verdict_stage::passed;
  slow.kernel.candidate_seconds = 3600;
  int asked = 0;
  double answer = 1e-6;
  const auto again = [&]() -> expected<timing> {
    ++asked;
    timing t;
    t.candidate_seconds = answer;
    return t;
  };
  auto quick_again = slow;
  if (auto called = call_drop_in(*winner, b.loaded.task, request, "2", quick_again, 1, again); !called) FAIL(render(called.error()));
  INFO(quick_again.not_called);
  CHECK(quick_again.as_called);
  CHECK(quick_again.kernel.candidate_seconds == answer);
  CHECK(asked == 1);
  answer = 1800; // a drop-in that says what its kernel cannot do, twice seen
  auto as_slow = slow;
  if (auto called = call_drop_in(*winner, b.loaded.task, request, "2", as_slow, 1, again); !called) FAIL(render(called.error()));
  CHECK_FALSE(as_slow.as_called);
  CHECK_THAT(as_slow.not_called, Contains("not believed") && Contains("the kernel alone was timed at " + format_seconds(answer)));
  CHECK(asked == 2);
}

TEST_CASE("Whoever tries a drop-in waits for the device", "[workbench]") {
  loaded_bench b;
  const auto winner = write_winner(b.loaded.task, honest(1), on_stand_in(), nullptr);
  if (!winner) FAIL(render(winner.error()));
  auto options = winner->options;
  options.seeds = 1;
  std::atomic<bool> tried = false, right = false;
  std::thread other;
  {
    const auto lease = lease_device(options.device);
    other = std::thread([&] {
      right = check_drop_in(winner->place.path(), b.loaded.task, options).has_value();
      tried = true;
    });
    for (int tenths = 0; tenths < 100 && !tried; ++tenths) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK_FALSE(tried);
  }
  other.join();
  CHECK(right);
}

TEST_CASE("Waiting for the device is not the reference's time", "[workbench][alone]") {
  share_with_stand_in();
  auto folder = temp_dir::create("pragma-test-");
  REQUIRE(folder);
  REQUIRE(write_file_atomic(folder->path() / "task.py", test::python_task));
  reference_options options;
  options.device = {"stand_in", 0};
  auto ref = reference::start(options);
  if (!ref) FAIL(render(ref.error()));
  REQUIRE(ref->load(folder->path() / "task.py"));
  expected<call_limit> limit = fail(ec::internal, "not asked");
  std::thread other;
  {
    const auto lease = lease_device(options.device);
    other = std::thread([&] { limit = limit_of_call(*ref, 20); });
    std::this_thread::sleep_for(std::chrono::seconds(3)); // somebody else's measurement
  }
  other.join();
  REQUIRE(limit);
  CHECK(limit->reference_seconds < 2.5);
  CHECK(limit->seconds <= 30);
}
