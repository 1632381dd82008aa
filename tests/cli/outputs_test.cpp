// What a run leaves in its folder, and what results of a suite must agree in.
#include "base/files.hpp"
#include "cli/engine.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "base/text.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

namespace {

cli::backend_options every_flag() {
  cli::backend_options all;
  all.index = 3;
  all.baseline = "compile";
  all.allow_tf32 = all.allow_torch = true;
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
                      Contains("--backend " + every_flag().backend) && Contains("--allow-tf32") && Contains("--allow-torch"));
  for (const char* file : {"model_new.py", "kernel.py", "task_reference.py", "run.json"}) CHECK(std::filesystem::exists(folder->path() / file));
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
  CHECK(options["allow_tf32"] == true);
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
  CHECK(differs([](auto& d) { d.allow_tf32 = true; }));
  CHECK(differs([](auto& d) { d.allow_torch = true; }));
}

TEST_CASE("what a verification looked at is a short line: the seeds of a task's own inputs are counted") {
  CHECK(cli::checked_text({"own inputs, seed 1", "own inputs, seed 2", "large values", "two runs give the same bits"}) == "own inputs of 2 seeds; large values; two runs give the same bits");
  CHECK(cli::checked_text({"own inputs, seed 1"}) == "own inputs of 1 seed");
  CHECK(cli::checked_text({}).empty());
}
