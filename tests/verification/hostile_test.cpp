// Every candidate of tests/hostile goes the whole way: build, verify, time with its audits. None may come out as passed,
// each must be stopped at a stage that its file names, and afterwards a good candidate must still pass. Each file's first
// lines say what it attacks, at which stages it may be stopped, with which flags it is built and how long, on which task (task.py or the one
// that is named) and with how many threads it runs. Those that only the audit of times may stop have the machine for themselves ([alone]).
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "timing/timing.hpp"
#include "verification/verify.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <iostream>
#include <tuple>
#include <unistd.h>

using namespace pragma;

namespace {

struct hostile {
  std::string name, attack;
  std::vector<std::string> stages; ///< where it may be stopped
  std::string task = "task";
  int threads = 1;
  double build_seconds = defaults::build_cpu_seconds;
  candidate c;
};

std::string after(const std::string& source, const std::string& label) {
  for (const auto& line : split(source.substr(0, 1000), '\n'))
    if (line.rfind(label, 0) == 0) return trim(line.substr(label.size()));
  return "";
}

std::vector<hostile> corpus() {
  std::vector<hostile> all;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TESTS_DIR) + "/hostile")) {
    if (entry.path().extension() != ".cpp") continue;
    hostile h;
    h.name = entry.path().stem().string();
    h.c.source = *read_file(entry.path());
    h.c.origin = "test";
    h.c.flags = {"-O2"};
    h.attack = after(h.c.source, "// Attack:");
    h.stages = split(after(h.c.source, "// Stopped at:"), ' ');
    for (auto flag : split(after(h.c.source, "// Flags:"), ' ')) {
      if (const auto at = flag.find("\\n"); at != std::string::npos) flag.replace(at, 2, "\n");
      if (!flag.empty()) h.c.flags.push_back(flag);
    }
    // For those that keep the compiler busy as long as it may run.
    if (const auto limit = after(h.c.source, "// Build seconds:"); !limit.empty()) h.build_seconds = std::stod(limit);
    if (const auto task = after(h.c.source, "// Task:"); !task.empty()) h.task = task;
    if (const auto threads = after(h.c.source, "// Threads:"); !threads.empty()) h.threads = std::stoi(threads);
    all.push_back(std::move(h));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return std::tie(b.task, a.name) < std::tie(a.task, b.name); });
  return all;
}

/// Its threads wait for the next call as OpenMP's do.
candidate good_parallel_candidate() {
  candidate c;
  c.origin = "test";
  c.flags = {"-O3", "-march=native"};
  c.source = R"(
#include "pragma_kernel.h"
void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data;
  const float* y = (const float*)a->inputs[1].data;
  float* z = (float*)a->outputs[0].data;
  const int64_t rows = a->inputs[0].shape[0], inner = a->inputs[0].shape[1], columns = a->inputs[1].shape[1];
#pragma omp parallel for
  for (int64_t r = 0; r < rows; ++r) {
    float* out = z + r * columns;
    for (int64_t c = 0; c < columns; ++c) out[c] = 0;
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t c = 0; c < columns; ++c) out[c] += x[r * inner + k] * y[k * columns + c];
  }
}
)";
  return c;
}

candidate good_candidate() {
  candidate c;
  c.origin = "test";
  c.flags = {"-O3", "-march=native"};
  c.source = R"(
#include "pragma_kernel.h"
#include <cmath>
void pragma_kernel(const pragma_args* a) {
  const float* x = (const float*)a->inputs[0].data;
  const float* scale = (const float*)a->params[0].data;
  float* y = (float*)a->outputs[0].data;
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] / (1 + std::fabs(x[r * columns + c])) * scale[c];
}
)";
  return c;
}

/// Builds two at a time, in order.
std::vector<expected<build_output>> build_all(const std::vector<hostile>& all) {
  std::vector<expected<build_output>> built(all.size(), tl::unexpected<error>(error{}));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      build_options options;
      options.cpu_seconds = all[i].build_seconds;
      built[i] = build_candidate(all[i].c, options);
    }
  };
  auto other = std::async(std::launch::async, work);
  work();
  other.get();
  return built;
}

struct outcome {
  verdict_stage stage = verdict_stage::build;
  std::string reason;
};

/// The way of a candidate through the checker, as the actors drive it.
outcome judge(const expected<build_output>& built, const task& t, const task_audit& audit, reference& ref, int threads = 1) {
  if (!built) {
    const auto code = built.error().code;
    CHECK((code == ec::build_failed || code == ec::invalid_argument));
    return {verdict_stage::build, built.error().message};
  }
  verify_options options;
  options.call_timeout_seconds = 1;
  options.threads = threads;
  auto checked = verify(t, audit, ref, *built, options);
  INFO((checked ? "" : render(checked.error())));
  REQUIRE(checked);
  if (!checked->passed()) return {checked->stage, checked->reason};
  timing_options timing;
  timing.threads = threads;
  timing.blocks = 8;
  timing.max_seconds = 3;
  auto timed = time_candidate(t, audit, ref, *built, *checked, timing);
  if (!timed && timed.error().code == ec::measurement_failed) timed = time_candidate(t, audit, ref, *built, *checked, timing);
  INFO((timed ? "" : render(timed.error())));
  REQUIRE(timed);
  return {timed->result.stage, timed->result.reason};
}

std::string word(verdict_stage stage) { return json(stage).get<std::string>(); }

/// Stopped at the latest by what is timed.
bool shown_by_times(const hostile& h) { return std::find(h.stages.begin(), h.stages.end(), "audit") != h.stages.end(); }

/// None of them passes, each is stopped where its file says, and afterwards good candidates still pass.
void stops_each_of(const std::vector<hostile>& all) {
  reference_options how;
  auto ref = reference::start(how);
  INFO((ref ? "" : render(ref.error())));
  REQUIRE(ref);
  std::string loaded;
  expected<task> t = fail(ec::internal, "no task yet");
  expected<task_audit> audit = fail(ec::internal, "no task yet");
  const auto load = [&](const std::string& name) {
    if (loaded == name) return;
    t = ref->load(std::string(TESTS_DIR) + "/hostile/" + name + ".py");
    INFO((t ? "" : render(t.error())));
    REQUIRE(t);
    audit = audit_task(*t, *ref, {});
    REQUIRE(audit);
    REQUIRE(audit->passing_nulls.empty());
    loaded = name;
  };

  const std::filesystem::path victim = "/tmp/pragma-hostile-victim", trace = "/tmp/pragma-hostile-was-here";
  REQUIRE(write_file_atomic(victim, "alive"));
  const int reference_pid = ref->pid();

  const auto built = build_all(all);
  std::cout << "candidate                 stopped at  reason\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& h = all[i];
    INFO(h.name << ": " << h.attack);
    load(h.task);
    auto result = judge(built[i], *t, *audit, *ref, h.threads);
    if (result.stage == verdict_stage::not_established) result = judge(built[i], *t, *audit, *ref, h.threads); // other work on this machine
    std::string reason = result.reason.substr(0, result.reason.find('\n'));
    if (reason.size() > 150) reason = reason.substr(0, 147) + "...";
    std::cout << h.name << std::string(h.name.size() < 26 ? 26 - h.name.size() : 1, ' ') << word(result.stage)
              << std::string(12 - std::min<size_t>(11, word(result.stage).size()), ' ') << reason << std::endl;
    INFO(result.reason);
    CHECK(result.stage != verdict_stage::passed);
    CHECK_FALSE(result.reason.empty());
    CHECK(result.reason.find("root:") == std::string::npos); // nothing of what it wanted to read comes back
    const auto expected_stage = result.stage == verdict_stage::not_established ? "audit" : word(result.stage); // what only times can show
    CHECK(std::find(h.stages.begin(), h.stages.end(), expected_stage) != h.stages.end());
  }

  CHECK(ref->pid() == reference_pid);
  CHECK(::kill(reference_pid, 0) == 0);
  CHECK(std::filesystem::exists(victim));
  CHECK_FALSE(std::filesystem::exists(trace));
  std::filesystem::remove(victim);
  load("task");
  for (int turn = 0; turn < 2; ++turn) {
    auto last = judge(build_candidate(good_candidate()), *t, *audit, *ref);
    if (last.stage == verdict_stage::not_established) last = judge(build_candidate(good_candidate()), *t, *audit, *ref);
    INFO(last.reason);
    CHECK((last.stage == verdict_stage::passed || last.stage == verdict_stage::not_established));
    std::cout << "(a good candidate)        " << word(last.stage) << "      " << last.reason << std::endl;
  }
  load("product");
  const auto parallel = judge(build_candidate(good_parallel_candidate()), *t, *audit, *ref, 2);
  INFO(parallel.reason);
  CHECK((parallel.stage == verdict_stage::passed || parallel.stage == verdict_stage::not_established));
  std::cout << "(a good one, 2 threads)   " << word(parallel.stage) << "      " << parallel.reason << std::endl;
}

std::vector<hostile> part_of_corpus(bool by_times) {
  auto all = corpus();
  REQUIRE(all.size() > 110);
  std::erase_if(all, [&](const hostile& h) { return shown_by_times(h) != by_times; });
  return all;
}

} // namespace

TEST_CASE("No hostile candidate passes, and the checker lives on", "[hostile]") { stops_each_of(part_of_corpus(false)); }

TEST_CASE("No hostile candidate passes that only times may show, and the checker lives on", "[hostile][alone]") { stops_each_of(part_of_corpus(true)); }
