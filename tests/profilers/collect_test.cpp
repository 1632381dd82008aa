// collect() on a real task and real candidates: which metrics come, from where, and what is said of those that don't.
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "profilers/by_manifest.hpp"
#include "profilers/collect.hpp"
#include "profilers/running.hpp"
#include "tests/fixtures/skip.hpp"
#include "profilers/hardware.hpp"

#include <algorithm>
#include <chrono>
#include <catch2/catch.hpp>

using namespace pragma;

namespace {

const char* const scale_rows_task = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x * 0.5)

def get_inputs():
    return [torch.randn(64, 1024)]

def get_init_inputs():
    return []
)";

/// Calls expf once an element: not vectorised without -ffast-math.
const char* const scalar_kernel = R"(#include "pragma_kernel.h"
#include <cmath>
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const int64_t n = args->inputs[0].shape[0] * args->inputs[0].shape[1];
  for (int64_t i = 0; i < n; ++i)
    y[i] = std::exp(x[i] * 0.5f);
}
)";

/// The same work with two threads.
const char* const threaded_kernel = R"(#include "pragma_kernel.h"
#include <cmath>
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = static_cast<const float*>(args->inputs[0].data);
  float* y = static_cast<float*>(args->outputs[0].data);
  const int64_t n = args->inputs[0].shape[0] * args->inputs[0].shape[1];
#pragma omp parallel for num_threads(args->threads)
  for (int64_t i = 0; i < n; ++i)
    y[i] = std::exp(x[i] * 0.5f);
}
)";

/// The task in its reference process, shared by all cases: starting Torch is what takes the time.
struct loaded {
  temp_dir folder;
  reference ref;
  pragma::task task;
};

loaded& shared() {
  static loaded one = [] {
    auto folder = temp_dir::create("pragma-test-collect-");
    REQUIRE(folder);
    const auto file = folder->path() / "exp_rows.py";
    REQUIRE(write_file_atomic(file, scale_rows_task));
    auto ref = reference::start({});
    REQUIRE(ref);
    auto t = ref->load(file, 2);
    REQUIRE(t);
    return loaded{std::move(*folder), std::move(*ref), std::move(*t)};
  }();
  return one;
}

struct built_candidate {
  candidate source;
  build_output binary;
};

built_candidate build(const char* source) {
  candidate c;
  c.source = source;
  c.flags = {"-O3", "-march=native"};
  auto built = build_candidate(c);
  if (!built) FAIL(render(built.error()));
  return {c, std::move(*built)};
}

timing timing_of(double seconds) {
  timing t;
  t.candidate_seconds = seconds;
  t.blocks_accepted = 25;
  return t;
}

machine_limits limits_of_a_small_machine() {
  machine_limits l;
  l.cache_bytes = {32 << 10, 512 << 10, 32 << 20};
  l.copy_gbs = {200, 100, 70, 30};
  l.read_gbs = {200, 100, 70, 30};
  l.peak_gflops = 100;
  return l;
}

bool mentions(const std::vector<std::string>& lines, const std::string& word) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& l) { return l.find(word) != std::string::npos; });
}

} // namespace

TEST_CASE("a scalar kernel: what each source says of it", "[alone]") {
  auto& s = shared();
  const auto c = build(scalar_kernel);
  const auto limits = limits_of_a_small_machine();
  collect_options options;
  options.max_seconds = 60; // the machine may be busy; what is tested here is not the budget
  std::vector<std::string> steps;
  options.progress = [&](const std::string& step) { steps.push_back(step); };
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(5e-4), &limits, options);
  REQUIRE(p);
  CHECK(p->candidate == c.source.id());
  CHECK(p->binary == c.binary.binary_hash);
  CHECK_FALSE(p->device.empty());
  CHECK(p->seconds > 0);
  CHECK_FALSE(steps.empty());
  INFO(json(p->missing).dump());

  // 64 x 1024 floats in and out.
  CHECK(p->value("seconds_per_call") == 5e-4);
  REQUIRE(p->value("achieved_gbs"));
  CHECK(*p->value("achieved_gbs") == Approx(2 * 64 * 1024 * 4 / 5e-4 / 1e9).epsilon(0.02));
  CHECK(p->value("roofline_share"));
  CHECK(p->find("roofline_share")->how == provenance::measured);

  REQUIRE(p->value("software.task_clock"));
  CHECK(*p->value("software.task_clock") > 0);
  CHECK(*p->value("software.cpus_utilized") < 1.2);
  CHECK(*p->value("software.page_faults") < 1); // outputs are kept between calls

  CHECK(p->value("remarks.missed_loops") == 1.0);
  const auto missed = std::find_if(p->remarks.begin(), p->remarks.end(), [](const auto& r) { return r.kind == "missed"; });
  REQUIRE(missed != p->remarks.end());
  CHECK(missed->line == 7);

  if (p->value("callgrind.Ir")) {
    CHECK(*p->value("callgrind.Ir") > 64 * 1024 * 5);
    CHECK(*p->value("callgrind.Ir") < 64 * 1024 * 200); // one call, not several
    CHECK(p->value("callgrind.hottest_line") == 8.0);
    CHECK(p->find("callgrind.Ir")->how == provenance::simulated);
    CHECK(p->find("callgrind.Ir")->note.find("twin") != std::string::npos);
    CHECK(*p->value("callgrind.l1_traffic_ratio") == Approx(1).epsilon(0.1)); // each byte once
  } else {
    CHECK(mentions(p->missing, "callgrind:"));
  }
  if (p->value("hot_loop.instructions")) {
    CHECK(p->value("hot_loop.calls") == 1.0);
    CHECK(p->find("hot_loop.calls")->how == provenance::static_analysis);
  }
  if (!p->value("llvm_mca.ipc")) CHECK((mentions(p->missing, "llvm-mca") || mentions(p->missing, "objdump")));
  if (!p->value("ipc")) CHECK(mentions(p->missing, "perf:"));

  // No simulated or static number carries a hardware counter's name; every name is one that can be asked for.
  std::vector<std::string> names;
  for (const auto& m : p->metrics) {
    names.push_back(m.name);
    if (m.how != provenance::measured) CHECK(m.name.find('.') != std::string::npos);
    CHECK_FALSE(m.tool.empty());
  }
  CHECK(check_metric_names(names));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("a threaded kernel is profiled with its threads", "[alone]") {
  auto& s = shared();
  const auto c = build(threaded_kernel);
  collect_options options;
  options.threads = 2;
  options.max_seconds = 60;
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(3e-4), nullptr, options);
  REQUIRE(p);
  CHECK(mentions(p->missing, "roofline:")); // no limits were given
  CHECK(p->value("software.task_clock"));
  INFO(json(p->missing).dump());
  if (p->value("callgrind.Ir")) {
    CHECK(*p->value("callgrind.Ir") > 64 * 1024 * 5); // the work inside the parallel region is counted
    CHECK(p->value("callgrind.hottest_line") == 9.0);
  }
}

TEST_CASE("a budget that is too small cuts the slow tool and says so", "[alone]") {
  auto& s = shared();
  const auto c = build(scalar_kernel);
  collect_options options;
  options.max_seconds = 6;
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(0.5), nullptr, options); // a call that is said to take 0.5 s
  REQUIRE(p);
  CHECK_FALSE(p->value("callgrind.Ir"));
  CHECK((mentions(p->missing, "of the time for tools") || mentions(p->missing, "valgrind is not installed")));
  CHECK(p->value("remarks.missed_loops"));
}

TEST_CASE("samples that found no room are not taken for time in the operating system", "[alone]") {
  auto& s = shared();
  const auto c = build(scalar_kernel);
  collect_options options;
  options.default_metrics = false;
  options.extra_metrics = {"seconds_per_call", "samples.count", "samples.system_share"};
  const auto once = collect(s.task, c.source, c.binary, s.ref, timing_of(1e-5), nullptr, options); // so many calls that they take far longer than was planned
  REQUIRE(once);
  INFO(json(once->missing).dump());
  if (!once->value("samples.count")) return test::skip("no samples of time here");
  CHECK(once->value("samples.system_share") == 0.0); // the kernel makes no system call
}

TEST_CASE("only what was asked for, when the default set is off", "[alone]") {
  auto& s = shared();
  const auto c = build(scalar_kernel);
  collect_options options;
  options.default_metrics = false;
  options.extra_metrics = {"achieved_gbs", "remarks.missed_loops"};
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(5e-4), nullptr, options);
  REQUIRE(p);
  CHECK(p->metrics.size() == 2);
  CHECK(p->value("achieved_gbs"));
  CHECK(p->value("remarks.missed_loops"));
}

namespace {

/// Experiments alone, of a kernel whose body is `code`; x and y have `n` elements.
profile experiments_of(const std::string& code, const std::vector<std::string>& wanted = {"experiment.cached_time", "experiment.flushed_time", "experiment.ones_time", "experiment.in_order_time"},
                       int threads = 1) {
  auto& s = shared();
  const auto c = build(("#include \"pragma_kernel.h\"\n#include <cmath>\n#include <cstring>\n#include <omp.h>\nextern \"C\" void pragma_kernel(const pragma_args* args) {\n"
                        "  const float* x = static_cast<const float*>(args->inputs[0].data);\n  float* y = static_cast<float*>(args->outputs[0].data);\n  const int64_t n = 64 * 1024;\n" + code + "}\n").c_str());
  collect_options options;
  options.default_metrics = false;
  options.extra_metrics = wanted;
  options.threads = threads;
  auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(threads > 1 ? 0.1 : 1e-3), nullptr, options);
  REQUIRE(p);
  INFO(json(*p).dump());
  REQUIRE((wanted.front() != "experiment.cached_time" || (p->value("experiment.cached_time") && p->value("experiment.in_order_time")) || mentions(p->missing, "experiments:"))); // beside other work there is no figure, and that is said
  return *p;
}

bool below(const profile& p, const char* name, double most) { return !p.value(name) || *p.value(name) < most; }
bool above(const profile& p, const char* name, double least) { return !p.value(name) || *p.value(name) > least; }
/// A Zen 3 computes with denormals as quickly as with others, and its first level finds a line by its linear address: pages folded onto one miss each other there.
bool is_amd() { return read_file("/proc/cpuinfo").value_or("").find("AuthenticAMD") != std::string::npos; }

} // namespace

TEST_CASE("a team of a fixed size is known by its source, and a disturbed experiment says nothing") {
  CHECK(has_a_fixed_team("const int t = omp_get_thread_num();\nfor (int r = t * 512; r < t * 512 + 512; ++r)"));
  CHECK_FALSE(has_a_fixed_team("const int t = omp_get_thread_num(), n = omp_get_num_threads();"));
  CHECK_FALSE(has_a_fixed_team("#pragma omp parallel for num_threads(args->threads)"));
  CHECK(under_usual_conditions(110e-6, 100e-6, 2));
  CHECK(under_usual_conditions(60e-6, 100e-6, 1)); // the shortest of many, against a median
  CHECK_FALSE(under_usual_conditions(758e-6, 377e-6, 2)); // a team on one core
}

TEST_CASE("rounds of an experiment are compared by the shortest where those agree, else by neighbours") {
  const std::vector<double> quiet = {10, 10.1, 12, 11, 14}, gone = {5.1, 5, 6, 5.5, 9};
  REQUIRE(compare_rounds(quiet, gone, 0.03));
  CHECK(compare_rounds(quiet, gone, 0.03)->usual == 10);
  CHECK(compare_rounds(quiet, gone, 0.03)->changed == 5);
  // A machine whose speed drifts: no two rounds of a kind agree, each pair does.
  std::vector<double> usual, changed;
  for (int i = 0; i < 12; ++i) {
    usual.push_back(10 + i);
    changed.push_back((10 + i) * (i % 2 ? 0.98 : 1.01));
  }
  REQUIRE(compare_rounds(usual, changed, 0.03));
  CHECK(compare_rounds(usual, changed, 0.03)->changed / compare_rounds(usual, changed, 0.03)->usual == Approx(1).epsilon(0.03));
  // Fewer of them, or pairs that disagree, say nothing.
  CHECK_FALSE(compare_rounds({usual.begin(), usual.begin() + 6}, {changed.begin(), changed.begin() + 6}, 0.03));
  for (int i = 0; i < 12; i += 3) changed[static_cast<size_t>(i)] *= 1.5;
  CHECK_FALSE(compare_rounds(usual, changed, 0.03));
}

TEST_CASE("an experiment takes away the time that its cause takes, and no other", "[alone]") {
  const auto denormal = experiments_of("  for (int64_t i = 0; i < n; ++i) {\n    float t = x[i] * 1e-38f;\n    for (int k = 0; k < 8; ++k) t = t * 0.9f + 1e-40f;\n    y[i] = t;\n  }\n");
  CHECK((is_amd() || below(denormal, "experiment.flushed_time", 60)));
  CHECK(above(denormal, "experiment.cached_time", 80));
  const auto branches = experiments_of("  for (int64_t i = 0; i < n; ++i) {\n    float v = x[i];\n    if (v < 0) {\n      v = 0;\n      __asm__ volatile(\"\" : \"+x\"(v));\n    }\n    y[i] = v;\n  }\n");
  CHECK(below(branches, "experiment.ones_time", 70));
  CHECK(above(branches, "experiment.flushed_time", 90));
  CHECK(below(branches, "experiment.in_order_time", 60)); // 64 Ki elements in order take some microseconds
  const auto copy = experiments_of("  std::memcpy(y, x, 4 * n);\n");
  CHECK(above(copy, "experiment.in_order_time", 60)); // it does nothing else
  // Each load needs the one before it for its address, and goes to another line, by no stride that a processor could guess.
  const auto waiting = experiments_of("  uint32_t at = 0, line = 0;\n  for (int64_t i = 0; i < n; ++i) {\n    uint32_t bits;\n    std::memcpy(&bits, x + at, 4);\n    __asm__ volatile(\"and $0, %0\" : \"+r\"(bits));\n"
                                      "    line = (line * 5 + 3 + bits) % 4096;\n    at = line * 16;\n  }\n  y[0] = x[at];\n");
  CHECK((is_amd() || below(waiting, "experiment.cached_time", 85)));
  CHECK(above(waiting, "experiment.ones_time", 90));
}

TEST_CASE("a team whose members take fixed parts is tried on one processor, with all of its threads", "[alone]") {
  // Each adds to a number of its own, on a line of its own: on one processor one does so after the other.
  const auto team = experiments_of("  alignas(128) static volatile float sums[64];\n#pragma omp parallel num_threads(2)\n  {\n    volatile float* mine = sums + omp_get_thread_num() * 32;\n"
                                   "    for (int64_t i = 0; i < 16 * n; ++i) *mine = *mine + x[i % n];\n  }\n  y[0] = sums[0];\n",
                                   {"experiment.one_processor_time", "experiment.one_thread_time"}, 2);
  INFO(json(team).dump());
  CHECK_FALSE(team.value("experiment.one_thread_time")); // alone, a thread would do its part only
  if (!team.value("experiment.one_processor_time")) return test::skip("other work kept the machine busy, or there is one processor");
  CHECK(team.find("experiment.one_processor_time")->note.starts_with("all 2 threads on one processor")); // how long that takes hangs on who else works here: under_usual_conditions() guards findings
}

TEST_CASE("a source that forbids what would make it quicker is compiled with the leave, and others are not", "[alone]") {
  CHECK(in_single_precision("#include <cmath>\n#include \"a.h\"\ndouble f();\n") == "#include <cmath>\n#include \"a.h\"\n#define double float\ndouble f();\n");
  CHECK(in_single_precision("#include <cmath>\ndouble f();\n") == "#include <cmath>\n#define double float\ndouble f();\n");
  CHECK(in_single_precision("double f();") == "#define double float\ndouble f();");
  const std::vector<std::string> all = {"experiment.freed_time", "experiment.single_time", "experiment.reciprocal_time"};
  const auto sum = experiments_of("  float s = 0;\n  for (int64_t i = 0; i < n; ++i) s += x[i];\n  y[0] = s;\n", all);
  CHECK(below(sum, "experiment.freed_time", 60));
  CHECK_FALSE(sum.value("experiment.single_time"));
  CHECK_FALSE(sum.value("experiment.reciprocal_time"));
  const auto widened = experiments_of("  for (int64_t i = 0; i < n; ++i) {\n    double t = x[i];\n    for (int k = 0; k < 8; ++k) t = t * x[i] + 0.5;\n    y[i] = t;\n  }\n", all);
  CHECK(below(widened, "experiment.single_time", 85));
  CHECK_FALSE(widened.value("experiment.reciprocal_time"));
  const auto divided = experiments_of("  for (int64_t i = 0; i < n; ++i) y[i] = std::sqrt(1 / std::sqrt(x[i] * x[i] + 3));\n", all);
  CHECK(below(divided, "experiment.reciprocal_time", 90));
  const auto plain = experiments_of("  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;\n", all);
  const auto start = std::chrono::steady_clock::now(); // who never ends when it is compiled so costs some seconds
  const auto endless = experiments_of("#if __FAST_MATH__\n  for (;;) __asm__ volatile(\"\");\n#endif\n  float s = 0;\n  for (int64_t i = 0; i < n; ++i) s += x[i];\n  y[0] = s;\n", all);
  CHECK_FALSE(endless.value("experiment.freed_time"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(above(plain, "experiment.freed_time", 70)); // of vectors that are narrow here, as the compiler has them
  CHECK_FALSE(plain.value("experiment.single_time"));
  CHECK_FALSE(plain.value("experiment.reciprocal_time"));
}

TEST_CASE("an event of perf can be asked for by its own name", "[alone]") {
  if (find_program("perf").empty()) return;
  const auto all = available_metrics();
  if (std::none_of(all.begin(), all.end(), [](const auto& m) { return m.name == "minor-faults"; })) return;
  auto& s = shared();
  const auto c = build(scalar_kernel);
  collect_options options;
  options.default_metrics = false;
  options.extra_metrics = {"minor-faults"};
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(5e-4), nullptr, options);
  REQUIRE(p);
  // Counted, or a line that says why not (containers may forbid perf).
  CHECK((p->value("minor-faults") || mentions(p->missing, "minor-faults")));
}

TEST_CASE("an unknown metric is refused with the nearest names") {
  auto& s = shared();
  const auto c = build(scalar_kernel);
  collect_options options;
  options.extra_metrics = {"achieved_gb"};
  const auto p = collect(s.task, c.source, c.binary, s.ref, timing_of(5e-4), nullptr, options);
  REQUIRE_FALSE(p);
  CHECK(p.error().code == ec::invalid_argument);
  CHECK(p.error().message.find("achieved_gb") != std::string::npos);
  CHECK(p.error().hint.find("achieved_gbs") != std::string::npos);
}

TEST_CASE("a metric that only other machines have is refused with the reason") {
  const auto facts = read_cpu_facts();
  REQUIRE(facts);
  const auto known = check_metric_names({"topdown.retiring"});
  if (facts->has_pmu) return;
  REQUIRE_FALSE(known);
  CHECK(known.error().code == ec::unsupported);
  CHECK(known.error().message.find("perf") != std::string::npos);
}

namespace {

/// A tool that nobody tuned for: the shell runs the candidate and writes what it "counted".
json shell_tool() {
  const char* const script = "out=$1; shift; \"$@\" || exit 1; printf '[{\"name\": \"widgets\", \"value\": 50000}, {\"name\": \"slack\", \"value\": 12.5}]' > \"$out\"";
  return {{"name", "shelltool"},
          {"backend", {"cpu"}},
          {"collect",
           {{"program", {"/bin/sh"}},
            {"combine", json::array({{{"names", "widgets"}, {"how", "sum"}}})},
            {"passes", json::array({{{"name", "counters"},
                                     {"argv", {"{program}", "-c", script, "sh", "{scratch}/out.json", "{target}"}},
                                     {"whole_run", true},
                                     {"metrics", {{"widgets", "count"}, {"slack", "%"}}},
                                     {"outputs", json::array({{{"file", "out.json"}, {"format", "json"}, {"columns", {{"metric", "name"}, {"value", "value"}}}}})}}})},
            {"rules", json::array({{{"metric", "slack"}, {"above", 10}, {"bottleneck", "memory_latency_bound"}, {"why", "The widgets wait."}, {"remedies", {"oil them"}},
                                    {"confidence", 0.8}, {"ask", {"widgets"}}},
                                   {{"metric", "slack"}, {"below", 10}, {"bottleneck", "divider_bound"}, {"why", "Not this one."}}})}}}};
}

} // namespace

TEST_CASE("a tool for the CPU that only its manifest describes is run, and its rule ends in the profile", "[alone]") {
  auto& one = shared();
  const auto b = build(scalar_kernel);
  collect_options options;
  options.manifests = {shell_tool()};
  options.max_seconds = 20;
  const auto time = timing_of(1e-3); // 500 calls fit into the half second of a tool
  auto p = collect(one.task, b.source, b.binary, one.ref, time, nullptr, options);
  INFO((p ? join(p->missing, "\n") : render(p.error())));
  REQUIRE(p);
  REQUIRE(p->find("slack"));
  CHECK(p->find("slack")->value == Approx(12.5));
  REQUIRE(p->find("widgets"));
  CHECK(p->find("widgets")->value == Approx(100));
  REQUIRE(p->told.size() == 1);
  CHECK(p->told[0].what == "memory_latency_bound");
  CHECK(p->told[0].metric == "slack");
  CHECK(p->told[0].tool == "shelltool");
  // What a rule asks for is asked for after a finding of that rule, and after no other.
  finding f;
  f.what = bottleneck::memory_latency_bound;
  f.proof.push_back({"slack", 12.5, "%", 0, false, ""});
  CHECK(asked_by_rules({f}, "cpu", options.manifests) == std::vector<std::string>{"widgets"});
  CHECK(asked_by_rules({f}, "cuda", options.manifests).empty());
  f.what = bottleneck::divider_bound;
  CHECK(asked_by_rules({f}, "cpu", options.manifests).empty());
  // Its names can be asked for, others cannot.
  CHECK(check_metric_names(device_choice{}, {"widgets"}, options.manifests));
  CHECK_FALSE(check_metric_names(device_choice{}, {"wodgets"}, options.manifests));
  auto with_more = options.manifests; // it need not have a list of its names
  with_more[0]["collect"]["names"] = {{"more", {"gears"}}};
  CHECK(check_metric_names(device_choice{}, {"gears"}, with_more));
  CHECK_FALSE(check_metric_names(device_choice{}, {"gears"}, options.manifests));
  // A tool that cannot be had is a line, no failure.
  options.manifests[0]["collect"]["program"] = {"no-such-profiler-here"};
  p = collect(one.task, b.source, b.binary, one.ref, time, nullptr, options);
  REQUIRE(p);
  CHECK(mentions(p->missing, "shelltool"));
}

TEST_CASE("GNU time, which PRAGMA has no code for, counts page faults by manifest", "[alone]") {
  if (find_program("/usr/bin/time").empty()) {
    WARN("/usr/bin/time is not there (package time): skipped");
    return;
  }
  auto& one = shared();
  const auto b = build(scalar_kernel);
  collect_options options;
  options.max_seconds = 20;
  options.manifests = {{{"name", "gnutime"},
                        {"backend", {"cpu"}},
                        {"collect",
                         {{"program", {"/usr/bin/time"}},
                          {"passes", json::array({{{"name", "faults"},
                                                   {"argv", {"{program}", "-f", "[{\"name\": \"minor_faults_of_run\", \"value\": %R}]", "-o", "{scratch}/time.json", "{target}"}},
                                                   {"whole_run", true},
                                                   {"metrics", {{"minor_faults_of_run", "count"}}},
                                                   {"outputs", json::array({{{"file", "time.json"}, {"format", "json"}, {"columns", {{"metric", "name"}, {"value", "value"}}}}})}}})}}}}};
  auto p = collect(one.task, b.source, b.binary, one.ref, timing_of(1e-3), nullptr, options);
  INFO((p ? join(p->missing, "\n") : render(p.error())));
  REQUIRE(p);
  REQUIRE(p->find("minor_faults_of_run"));
  CHECK(p->find("minor_faults_of_run")->value > 0);
}
