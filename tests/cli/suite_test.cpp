#include "cli/parts.hpp"
#include "cli/progress.hpp"
#include "cli/suite.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace pragma;
using namespace pragma::cli;

namespace {
task_outcome outcome(const std::string& category, const std::string& status, double speedup, double baseline = 1e-3) {
  task_outcome t;
  t.category = category;
  t.status = status;
  t.speedup = {speedup, speedup, speedup};
  t.baseline_seconds = baseline;
  t.dispatch_bound = baseline < defaults::dispatch_bound_seconds;
  return t;
}
} // namespace

TEST_CASE("failures count in n and in fast_p, not in the means") {
  const auto f = figures_of("all", {outcome("conv", "ok", 4), outcome("conv", "ok", 1), outcome("conv", "failed", 0), outcome("conv", "unsupported", 0)});
  CHECK(f.n == 4);
  CHECK(f.success == 2);
  CHECK(f.arithmetic_mean == Approx(2.5));
  CHECK(f.geometric_mean == Approx(2.0));
  CHECK(f.fast_1 == Approx(0.25)); // exactly as fast is not faster
  CHECK(f.fast_2 == Approx(0.25));
}

TEST_CASE("a task that only measures Python's dispatch does not make the mean") {
  const auto f = figures_of("all", {outcome("others", "ok", 2), outcome("others", "ok", 1500, 20e-6)});
  CHECK(f.success == 2);
  CHECK(f.dispatch_bound == 1);
  CHECK(f.geometric_mean == Approx(2.0));
  CHECK(f.fast_1 == Approx(1.0));
}

TEST_CASE("what a program gets and what a kernel takes are not averaged, and not compared") {
  auto called = outcome("conv", "ok", 2), alone = outcome("conv", "ok", 50), failed = outcome("conv", "failed", 0);
  called.as_called = true;
  auto f = figures_of("all", {called, alone, failed});
  CHECK(f.as_called);
  CHECK(f.success == 2);
  CHECK(f.kernel_alone == 1);
  CHECK(f.geometric_mean == Approx(2));
  CHECK(f.fast_1 == Approx(1. / 3));
  f = figures_of("all", {alone, failed}); // no drop-in was called (--no-check): kernels among themselves
  CHECK_FALSE(f.as_called);
  CHECK(f.kernel_alone == 0);
  CHECK(f.geometric_mean == Approx(50));
  CHECK(change_between({alone}, {called}).tasks.empty());
  CHECK(change_between({alone}, {called}).other_kind.size() == 1);
  CHECK(change_between({alone}, {called}).open.empty()); // more time would establish nothing
}

TEST_CASE("what Torch keeps is 1.0 in the means, whether a drop-in would be slower or there is nothing for a kernel to do") {
  auto called = outcome("conv", "ok", 4), slower = outcome("conv", "ok", 0.25), left = outcome("conv", "left as it is", 0), alone = outcome("conv", "ok", 50);
  called.as_called = slower.as_called = slower.keeps_torch = true;
  const auto f = figures_of("all", {called, slower, left, alone, outcome("conv", "failed", 0), outcome("conv", "not established", 0)});
  CHECK(f.n == 6);
  CHECK(f.success == 3);      // a kernel that is right, though no program gets it
  CHECK(f.kept == 2);
  CHECK(f.kernel_alone == 1);
  CHECK(f.geometric_mean == Approx(std::cbrt(4)));
  CHECK(f.arithmetic_mean == Approx(2));
  CHECK(f.fast_1 == Approx(1. / 6));
  const auto kernels = figures_of("all", {alone, left}); // kernels among themselves: there is no program that could keep Torch
  CHECK(kernels.kept == 0);
  CHECK(kernels.geometric_mean == Approx(50));
  CHECK_FALSE(as_used(alone));
}

TEST_CASE("a suite's document of before says by its figure whether Torch was kept") {
  const auto read = [](bool called, double value) {
    json t = outcome("conv", "ok", value);
    t.erase("keeps_torch");
    t["as_called"] = called;
    return outcome_from(t, "/nowhere/bench.json")->keeps_torch;
  };
  CHECK(read(true, 0.7));
  CHECK_FALSE(read(true, 1.2));
  CHECK_FALSE(read(false, 0.7));
}

TEST_CASE("an interrupted task is no failure") {
  const auto f = figures_of("all", {outcome("conv", "ok", 4), outcome("conv", "interrupted", 0)});
  CHECK(f.n == 1);
  CHECK(f.fast_1 == Approx(1.0));
}

TEST_CASE("what a task's error is called in a suite follows from its exit code, and what nothing is known of is tried again") {
  const auto status = [](ec code) {
    const auto t = outcome_of("/suite/1_task.py", fail(code, "said so"));
    CHECK(t.name == "1_task");
    CHECK(t.reason == "said so");
    return std::pair(t.status, unsettled(t));
  };
  CHECK(status(ec::left_as_it_is) == std::pair(std::string("left as it is"), false));
  for (const auto code : {ec::measurement_failed, ec::busy, ec::locked, ec::tool_failed, ec::remote_failed, ec::io_error}) {
    INFO(name(code));
    CHECK(exit_code(code) == 6);
    CHECK(status(code) == std::pair(std::string("not established"), true));
  }
  CHECK(status(ec::interrupted) == std::pair(std::string("interrupted"), true));
  CHECK(status(ec::task_invalid) == std::pair(std::string("invalid"), false));
  CHECK(status(ec::unsupported) == std::pair(std::string("unsupported"), false));
  for (const auto code : {ec::candidate_failed, ec::not_found, ec::internal, ec::invalid_argument}) CHECK(status(code) == std::pair(std::string("failed"), false));
}

TEST_CASE("what Torch alone can run is left as it is, whoever refused it; a task that is invalid, or a machine that failed, is not") {
  const error dictionary{ec::torch_only, "forward() returns a dict", "a task must return one tensor or a tuple of tensors"};
  CHECK(for_optimizing(dictionary).code == ec::left_as_it_is);
  CHECK(for_optimizing(dictionary).message.find("forward() returns a dict") != std::string::npos);
  CHECK(for_optimizing({ec::task_invalid, "no Model", ""}).code == ec::task_invalid);
  const error not_lowered{ec::unsupported, "cannot lower it", ""};
  task no_graph;
  CHECK(can_be_cut(no_graph, {}, not_lowered).error().code == ec::left_as_it_is);
  CHECK(can_be_cut(no_graph, {}, {ec::internal, "a bug", ""}).error().code == ec::internal);
}

TEST_CASE("parts of a task are judged by a program that calls the drop-in and Model: whoever forbids that is refused before anything is tried") {
  task t;
  t.graph = R"({"version": 1, "random": false, "mutated": [], "inputs": [{"id": "x", "input": 0, "used": true, "dtype": "float32", "shape": [64, 32]}],
    "params": [], "constants": [], "outputs": ["b"], "nodes": [
    {"id": "a", "op": "aten.exp.default", "args": {"self": {"ref": "x"}}, "dtype": "float32", "shape": [64, 32]},
    {"id": "b", "op": "aten.made_up.default", "args": {"self": {"ref": "a"}}, "dtype": "float32", "shape": [64, 32]}]})";
  const error not_lowered{ec::unsupported, "cannot lower it", ""};
  load_request load;
  if (const auto cut = can_be_cut(t, load, not_lowered); !cut) FAIL(render(cut.error()));
  for (const std::string baseline : {"compile", "max-autotune", "best"}) {
    load.baseline = baseline;
    CHECK(can_be_cut(t, load, not_lowered));
  }
  load.call_drop_in = false;
  CHECK(can_be_cut(t, load, not_lowered).error().code == ec::left_as_it_is);
  CHECK(can_be_cut(t, load, not_lowered).error().hint == "leave --no-check away");
}

TEST_CASE("an attempt that is recorded is shown by its own number, not by the next one's") {
  run_event e;
  e.what = "iteration";
  e.attempt = 9; // of eight
  e.iteration.number = 8;
  CHECK(step_text(e) == "attempt 8 iteration");
  e.what = "verifying";
  e.attempt = 8;
  CHECK(step_text(e) == "attempt 8 verifying");
}

TEST_CASE("two suites: the ratio of each task holds both intervals; what is right in one only is named; no interval from two tasks") {
  const auto named = [](const std::string& name, const std::string& status, double value) {
    auto t = outcome("conv", status, value);
    t.name = name;
    t.speedup = {value, value * 0.9, value * 1.1};
    return t;
  };
  const std::vector<task_outcome> before = {named("a", "ok", 2), named("b", "ok", 2), named("c", "failed", 0), named("d", "ok", 3), named("e", "ok", 3), named("f", "not established", 0), named("g", "ok", 2)};
  auto change = change_between(before, {named("a", "ok", 4), named("b", "ok", 1), named("c", "ok", 1), named("d", "failed", 0), named("e", "interrupted", 0), named("f", "ok", 2), named("g", "not established", 0)});
  REQUIRE(change.tasks.size() == 2);
  CHECK(change.tasks[0].ratio.value == Approx(2));
  CHECK(change.tasks[0].ratio.low == Approx(3.6 / 2.2));
  CHECK(change.tasks[0].ratio.high == Approx(4.4 / 1.8));
  CHECK(change.won == std::vector<std::string>{"c"});
  CHECK(change.lost == std::vector<std::string>{"d"});
  CHECK(change.open == std::vector<std::string>{"e", "f", "g"}); // a busy machine accuses nobody
  CHECK(change.mean.value == Approx(1));
  CHECK(change.mean.low == 0);
  change = change_between(before, {named("a", "ok", 4), named("b", "ok", 4), named("d", "ok", 6)});
  CHECK(change.mean.value == Approx(2));
  CHECK(change.mean.low == Approx(2)); // all alike
}

TEST_CASE("one row per category in the paper's order, then all; no category is invented") {
  const auto table = suite_table({outcome("conv", "ok", 2), outcome("activation", "ok", 3)});
  REQUIRE(table.size() == 3);
  CHECK(table[0].category == "activation");
  CHECK(table[1].category == "conv");
  CHECK(table[2].category == "all");
  CHECK(suite_table({}).back().geometric_mean == 0);
}

TEST_CASE("the distance to the limit: Torch before, the kernel after, where the share is known") {
  auto a = outcome("conv", "ok", 4), b = outcome("conv", "ok", 2), unknown = outcome("conv", "ok", 9);
  a.candidate_seconds = 0.25e-3, b.candidate_seconds = 0.5e-3, unknown.candidate_seconds = 1e-4;
  a.roofline_share = 80, b.roofline_share = 20;
  const auto f = figures_of("all", {a, b, unknown});
  CHECK(f.limit_after == Approx(40));              // sqrt(80 * 20)
  CHECK(f.limit_before == Approx(14.1421).epsilon(1e-4)); // sqrt(20 * 10)
  CHECK(figures_of("all", {unknown}).limit_after == 0);
}
