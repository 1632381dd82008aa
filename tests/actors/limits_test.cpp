// Limits that were measured while other work ran, and what the workbench believes then: with figures that the test makes up, so that no load decides.
#include "tests/integration/small_task.hpp"

#include "actors/examine.hpp"
#include "actors/loop.hpp"
#include "base/files.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace pragma;
using Catch::Contains;

namespace {

/// A machine whose bandwidths are `scale` times generous ones: 1 or more allows whatever a real one does.
machine_limits machine(double scale) {
  machine_limits m;
  m.cpu = "made up";
  m.cache_bytes = {32 << 10, 1 << 20, 32 << 20};
  m.copy_gbs = m.read_gbs = {4000 * scale, 2000 * scale, 1000 * scale, 500 * scale};
  m.peak_gflops = 100e3 * scale;
  return m;
}

candidate relu_kernel() {
  candidate c;
  c.source = "#include \"pragma_kernel.h\"\n\nextern \"C\" void pragma_kernel(const pragma_args* args) {\n"
             "  const float* x = static_cast<const float*>(args->inputs[0].data);\n"
             "  float* y = static_cast<float*>(args->outputs[0].data);\n"
             "  for (long i = 0; i < 64 * 4096; ++i) y[i] = (x[i] > 0 ? x[i] : 0) * 2.0f + 1.0f;\n}\n";
  c.flags = {"-O3", "-march=native"};
  return c;
}

/// A workbench whose limits are a millionth of the machine's when the task is loaded, and `again` whenever they are measured again.
struct busy_start {
  temp_dir folder = std::move(*temp_dir::create("pragma-test-"));
  std::vector<bool> asked; ///< for limits: measured again?
  workbench bench;
  load_request load;
  loaded_task loaded;

  explicit busy_start(const expected<machine_limits>& again, const std::string& sidecar = "")
      : bench(nullptr, false, {}, [this, again](reference&, const load_request&, bool now) {
          asked.push_back(now);
          return now ? again : expected<machine_limits>(machine(1e-6));
        }) {
    REQUIRE(write_file_atomic(folder.path() / "task.py", small_task));
    if (!sidecar.empty()) REQUIRE(write_file_atomic(folder.path() / "task.json", sidecar));
    load.path = (folder.path() / "task.py").string();
    load.seeds = 1;
    auto found = load_checked(bench, load);
    if (!found) FAIL(render(found.error()));
    loaded = *found;
  }
  measurement measured() {
    measure_request wanted;
    wanted.candidate = relu_kernel();
    auto v = bench.verify(wanted.candidate);
    if (!v) FAIL(render(v.error()));
    wanted.verdict = *v;
    wanted.profile = false;
    auto m = bench.measure(wanted);
    if (!m) FAIL(render(m.error()));
    return *m;
  }
};

} // namespace

TEST_CASE("limits that were too low are measured again before an honest kernel is not believed, and stay better", "[limits][alone]") {
  busy_start start(machine(1));
  REQUIRE(start.loaded.limits.copy_gbs.back() == Approx(500e-6));
  const auto first = start.measured();
  INFO(first.verdict.reason);
  CHECK(first.verdict.passed());
  CHECK(start.asked == std::vector<bool>{false, true});
  REQUIRE(first.limits.copy_gbs.size() == 4);
  CHECK(first.limits.copy_gbs.back() == 500);

  // The next one needs no third measurement, and what is said of it rests on the second.
  examine_request request;
  request.candidate = relu_kernel();
  request.measure = true;
  request.profile_seconds = 0.5;
  const auto found = examine(start.bench, start.loaded, start.load, request);
  if (!found) FAIL(render(found.error()));
  CHECK(found->verdict.passed());
  CHECK(start.asked.size() == 2);
  const auto share = found->profile.value("roofline_share");
  REQUIRE(share);
  CHECK(*share <= 125);
  for (const auto& f : found->findings) CHECK(f.what != bottleneck::at_roofline);
}

TEST_CASE("a time that the machine cannot reach is not believed after a second measurement either", "[limits][alone]") {
  busy_start start(machine(1), R"({"bytes": 1e15})"); // 2000 s at the best of bandwidths
  const auto m = start.measured();
  INFO(m.verdict.reason);
  CHECK(m.verdict.stage == verdict_stage::not_established);
  CHECK(m.verdict.why_not == doubt::unbelievable);
  CHECK_THAT(m.verdict.reason, Contains("memory bandwidth (measured again just now)"));
  REQUIRE(start.asked.size() > 1);
  CHECK(std::count(start.asked.begin(), start.asked.end(), true) == static_cast<long>(start.asked.size()) - 1); // once a look, before it is not believed
}

TEST_CASE("a second measurement that finds less takes nothing away, and one that fails changes nothing", "[limits][alone]") {
  busy_start lower(machine(1e-7));
  CHECK_FALSE(lower.measured().verdict.established());
  const auto kept = lower.measured().limits.copy_gbs;
  REQUIRE(kept.size() == 4);
  CHECK(kept.back() == Approx(500e-6));

  busy_start failing(fail(ec::limit_exceeded, "no memory"));
  const auto m = failing.measured();
  CHECK_FALSE(m.verdict.established());
  CHECK_THAT(m.verdict.reason, Contains("could not be measured again: no memory"));
  CHECK(m.limits.peak_gflops == 0);
}

TEST_CASE("a run goes on, and is reported, with the limits that were measured again, of its own machine only", "[limits]") {
  loop run;
  run.begin({}, "run", "now");
  loaded_task environment;
  environment.limits = machine(0.01);
  run.loaded(environment);
  measurement m;
  run.measured(m);
  CHECK(run.header().environment.limits.peak_gflops == 1e3); // not measured again
  m.limits = machine(1);
  run.measured(m);
  CHECK(run.header().environment.limits.peak_gflops == 100e3);
  confirmation c;
  c.verdict.stage = verdict_stage::not_established;
  c.limits = machine(2);
  run.confirmed(c, 0);
  CHECK(run.header().environment.limits.peak_gflops == 200e3);
  c.limits = machine(4);
  c.limits.cpu = "another";
  run.confirmed(c, 0);
  CHECK(run.header().environment.limits.peak_gflops == 200e3);
}

TEST_CASE("why a drop-in was not called is told as it is, whatever the machine did meanwhile", "[limits]") {
  for (const std::string asked : {"", "it was not asked for (--no-check)"}) {
    loop run;
    run.begin({}, "run", "now");
    loaded_task environment;
    environment.limits = machine(1);
    run.loaded(environment);
    run.coded_now({});
    measurement m;
    m.profile.time.speedup = {2, 2, 2};
    m.verdict.stage = verdict_stage::passed;
    run.verified(m.verdict);
    run.measured(m);
    run.conclude("now");
    REQUIRE(run.best());
    confirmation c;
    c.verdict.stage = verdict_stage::passed;
    c.time.contended = true;
    c.not_called = asked;
    REQUIRE(run.confirmed(c, 0));
    CHECK(run.header().final.not_called == (asked.empty() ? "the machine was busy when the drop-in was called" : asked));
    CHECK(run.header().final.call_doubt == (asked.empty() ? doubt::machine_busy : doubt::none));
  }
}
