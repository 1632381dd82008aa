// What a run leaves in its folder, and what results of a suite must agree in.
#include "base/files.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "actors/examine.hpp"
#include "base/text.hpp"
#include "diagnosis/rules.hpp"
#include "profilers/sources.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace pragma;
using Catch::Contains;

namespace {

cli::backend_options every_flag() {
  cli::backend_options all;
  all.index = 3;
  all.baseline = "compile";
  all.allow_torch = true;
  all.tf32 = tf32_use::all;
  for (const auto& b : backends())
    if (b.on_device() && !why_absent(b).empty()) all.backend = b.name;
  REQUIRE(all.backend != "cpu"); // no machine has all of them
  return all;
}

/// As a head gives it to a machine that has no such device.
run_result won_elsewhere() {
  run_result result;
  auto& h = result.header;
  h.id = "20261122-000000-abcdef";
  h.state = "finished";
  h.best_attempt = 1;
  h.confirmed = true;
  h.final.not_called = "no /dev/nvidiactl";
  REQUIRE(every_flag().apply(h.request.load));
  h.environment.task.name = "relu";
  h.environment.task.source = "# the task\n";
  iteration_record it;
  it.number = 1;
  it.verdict.stage = verdict_stage::passed;
  it.new_best = true;
  it.code.language = "triton";
  it.code.source = "raise SystemExit\n";
  result.iterations.push_back(it);
  return result;
}

} // namespace

TEST_CASE("a winner that could not be tried where it was found is written all the same, and says how") {
  auto folder = temp_dir::create("outputs-");
  REQUIRE(folder);
  const auto said = cli::write_outputs(folder->path(), won_elsewhere(), true);
  REQUIRE(said);
  CHECK_THAT(*said, Contains("not checked on this machine: no /dev/") && Contains("pragma verify ") && Contains("task_reference.py ") && Contains("run.json") &&
                      Contains("--backend " + every_flag().backend) && Contains("--tf32 all") && Contains("--allow-torch"));
  for (const char* file : {"model_new.py", "kernel.py", "task_reference.py", "run.json"}) CHECK(std::filesystem::exists(folder->path() / file));
}

TEST_CASE("a kernel that is slower by itself is no drop-in, although nobody could say how it is when it is called") {
  run_result result = won_elsewhere();
  auto& h = result.header;
  h.final.time.speedup = {0.47, 0.46, 0.61};
  CHECK(cli::why_no_drop_in(result) == "its kernel alone is slower than Model");
  h.request.load.call_drop_in = false; // who asks for no check wants the kernel as it is
  CHECK(cli::why_no_drop_in(result).empty());
  h.request.load.call_drop_in = true;
  h.final.time.speedup = {0.96, 0.8, 1.1};
  CHECK(cli::why_no_drop_in(result).empty());
  h.final.time.speedup = {0.47, 0.46, 0.61};
  h.confirmed = false;
  CHECK(cli::why_no_drop_in(result).empty());
  h.confirmed = h.final.as_called = true;
  CHECK(cli::why_no_drop_in(result) == "Model itself is as fast where a program calls it");
}

TEST_CASE("terminal, table and report place the same time on the roofline: the headline's") {
  run_result result = won_elsewhere();
  auto& h = result.header;
  h.request.load.backend = "cpu";
  auto& limits = h.environment.limits;
  limits.cores = 2;
  limits.cache_bytes = {32768, 524288, 33554432};
  limits.copy_gbs = {180, 85, 42, 12};
  limits.read_gbs = {190, 90, 45, 14};
  h.environment.task.flops = 1e6;
  h.environment.task.bytes = 200e6;
  h.final.as_called = true;
  h.final.time.candidate_seconds = 30e-3;
  h.final.time.baseline_seconds = 60e-3;
  h.final.time.speedup = {2, 1.9, 2.1};
  h.final.kernel = h.final.time;
  h.final.kernel.candidate_seconds = 20e-3; // what a call from C takes
  result.iterations.front().code.measured.time = h.final.kernel;
  result.iterations.front().code.measured.metrics = {{"roofline_share", 77, "%", "", provenance::measured, ""}};
  const auto point = cli::roofline_as_reported(h);
  REQUIRE(point.share > 0.3);
  REQUIRE(point.share < 0.7);
  CHECK_THAT(render_html_report(cli::run_document(result)), Contains("It reaches " + format_number(100 * point.share, 0) + "% of the measured " + point.limit));
}

TEST_CASE("a headline that is the kernel's alone says so, and why") {
  run_result result = won_elsewhere();
  auto& h = result.header;
  h.final.as_called = false;
  h.final.not_called = "the machine was busy when the drop-in was called";
  h.final.time.candidate_seconds = 30e-3;
  h.final.time.baseline_seconds = 60e-3;
  h.final.time.speedup = {2, 1.9, 2.1};
  const auto report = render_html_report(cli::run_document(result));
  CHECK_THAT(report, Contains("faster than Torch by the kernel alone") && Contains("was not timed as a Torch program calls it: the machine was busy when the drop-in was called."));
  h.final.as_called = true;
  CHECK_THAT(render_html_report(cli::run_document(result)), Contains("faster than Torch as called") && !Contains("was not timed as a Torch program calls it"));
}

namespace {

/// Sixteen-bit products of a made-up GPU, at `seconds` a call, as the Profiler and the Conductor leave them in a run.
run_result half_products(dtype type, double seconds) {
  auto result = won_elsewhere();
  auto& h = result.header;
  h.request.load.backend = "cuda";
  h.request.load.tf32 = tf32_use::none;
  auto& limits = h.environment.limits;
  limits.backend = "cuda";
  limits.cache_bytes = {50 << 20};
  limits.copy_gbs = {5200, 4000};
  limits.read_gbs = {5500, 4400};
  limits.peak_gflops = 60e3;
  limits.tf32_gflops = 400e3;
  limits.half_gflops = 800e3;
  limits.launch_seconds = 2e-6;
  auto& t = h.environment.task;
  tensor_spec square;
  square.dtype = type;
  square.shape = {4096, 4096};
  t.inputs = {square, square};
  t.outputs = {square};
  t.flops = 2.0 * 4096 * 4096 * 4096;
  t.bytes = 3.0 * static_cast<double>(square.bytes());
  timing time;
  time.candidate_seconds = seconds;
  time.baseline_seconds = 2 * seconds;
  time.speedup = {2, 1.9, 2.1};
  h.final.time = h.final.kernel = time;
  auto& it = result.iterations.front();
  it.code.has_profile = true;
  it.code.measured.backend = "cuda";
  it.code.measured.time = time;
  source_result timed;
  timer_metrics(t, time, &limits, timed);
  it.code.measured.metrics = std::move(timed.metrics);
  it.findings = diagnose(diagnosis_of(h.environment, h.request.load, it.code.measured, nullptr, it.code.source));
  return result;
}

} // namespace

TEST_CASE("terminal, report and findings place a float16 task on float16's roofline, an old run's document too") {
  const auto result = half_products(dtype::float16, 600e-6); // 172 us at the peak of its units, 343 us at TF32's
  const auto point = cli::roofline_as_reported(result.header);
  const auto share = result.iterations.front().code.measured.value("roofline_share");
  REQUIRE(share);
  CHECK(100 * point.share == Approx(*share));
  CHECK(point.share == Approx(0.29).epsilon(0.02));
  CHECK(point.limit == "peak FLOP/s (FP16)");
  const auto said = "It reaches " + roofline_text(point), story = "it reaches " + roofline_text(point);
  auto document = cli::run_document(result);
  CHECK_THAT(render_html_report(document), Contains(said) && Contains(story) && Contains("The machine&#39;s limit for this task is peak FLOP/s (FP16)"));
  document["run"]["options"].erase("tf32"); // as a version of before that flag wrote it
  CHECK_THAT(render_html_report(document), Contains(said));

  // At its roofline the findings say so, with the same share.
  const auto done = half_products(dtype::float16, 176e-6);
  REQUIRE_FALSE(done.iterations.front().findings.empty());
  const auto& first = done.iterations.front().findings.front();
  CHECK(first.what == bottleneck::at_roofline);
  CHECK(first.proof.front().value == Approx(100 * cli::roofline_as_reported(done.header).share));

  // What is written costs what writing costs, in the terminal and the report as in the findings.
  auto copying = half_products(dtype::float16, 60e-6);
  copying.header.environment.task.flops = 0;
  source_result timed;
  timer_metrics(copying.header.environment.task, copying.header.final.time, &copying.header.environment.limits, timed);
  const auto moved = std::find_if(timed.metrics.begin(), timed.metrics.end(), [](const metric& m) { return m.name == "roofline_share"; });
  REQUIRE(moved != timed.metrics.end());
  CHECK(100 * cli::roofline_as_reported(copying.header).share == Approx(moved->value));
  CHECK_THAT(render_html_report(cli::run_document(copying)), Contains("It reaches " + format_number(moved->value, 0) + "% of the measured DRAM bandwidth"));

  // Products of float32 keep float32's; of a task of which a document tells no tensors, nothing is assumed.
  const auto wide = half_products(dtype::float32, 2.4e-3);
  CHECK(cli::roofline_as_reported(wide.header).limit == "peak FLOP/s (FP32)");
  for (const char* key : {"inputs", "params", "outputs"}) document["run"]["task"].erase(key);
  CHECK_THAT(render_html_report(document), Contains("% of the measured "));
  document["run"]["task"]["inputs"] = "float16[4096, 4096]";
  CHECK_THAT(render_html_report(document), Contains("% of the measured "));
}

TEST_CASE("a run that found nothing out is no failure of its candidates") {
  auto result = won_elsewhere();
  result.header.confirmed = false;
  result.header.best_attempt = 0;
  auto& verdict = result.iterations.front().verdict;
  verdict.stage = verdict_stage::compare;
  CHECK(cli::exit_code_of_run(result) == exit_code(ec::candidate_failed));
  verdict.stage = verdict_stage::not_established;
  CHECK(cli::exit_code_of_run(result) == exit_code(ec::measurement_failed));
  result.header.confirmed = true;
  CHECK(cli::exit_code_of_run(result) == 0);
  result.header.state = "interrupted";
  CHECK(cli::exit_code_of_run(result) == exit_code(ec::interrupted));
}

TEST_CASE("run.json names all of a device's flags") {
  const auto options = cli::run_document(won_elsewhere())["run"]["options"];
  CHECK(options["backend"] == every_flag().backend);
  CHECK(options["device"] == 3);
  CHECK(options["baseline"] == "compile");
  CHECK(options["tf32"] == "all");
  CHECK(options["allow_torch"] == true);
  CHECK(options["attempts"] == run_request().stop.attempts);
}

TEST_CASE("results under different flags of a device do not stand in one table") {
  const cli::run_options plain;
  const auto differs = [&](auto change) {
    auto other = plain;
    change(other.device);
    return other.key() != plain.key();
  };
  CHECK(plain.key() == cli::run_options().key());
  CHECK(differs([](auto& d) { d.backend = "cuda"; }));
  CHECK(differs([](auto& d) { d.index = 1; }));
  CHECK(differs([](auto& d) { d.baseline = "compile"; }));
  CHECK(differs([](auto& d) { d.tf32 = tf32_use::none; }));
  CHECK(differs([](auto& d) { d.allow_torch = true; }));
}

TEST_CASE("what a verification looked at is a short line: the seeds of a task's own inputs are counted") {
  CHECK(cli::checked_text({"own inputs, seed 1", "own inputs, seed 2", "large values", "two runs give the same bits"}) == "own inputs of 2 seeds; large values; two runs give the same bits");
  CHECK(cli::checked_text({"own inputs, seed 1"}) == "own inputs of 1 seed");
  CHECK(cli::checked_text({}).empty());
}
