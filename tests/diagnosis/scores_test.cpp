// What findings promised and brought.
#include "diagnosis/scores.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace pragma;

namespace {

iteration_record attempt(int number, bool best, interval against_best, const std::string& answers = "") {
  iteration_record r;
  r.number = number;
  r.verdict.stage = verdict_stage::passed;
  r.new_best = best;
  r.against_best = against_best;
  r.code.answers = answers;
  return r;
}

finding promising(bottleneck what, double confidence, double seconds, double without) {
  finding f;
  f.what = what;
  f.confidence = confidence;
  f.seconds = seconds;
  f.seconds_without = without;
  return f;
}

scored_run run_with(const std::string& id, bool better, double brought) { return {id, "task", "2026-01-01", {{"divider_bound", 2, 0.8, 1.5, brought, better}}}; }

} // namespace

TEST_CASE("an outcome is of the best version's finding that the attempt names") {
  auto first = attempt(1, true, {});
  first.findings = {promising(bottleneck::divider_bound, 0.7, 3e-3, 2e-3), promising(bottleneck::scalar_tail, 0.4, 0, 0)};
  auto second = attempt(2, false, {1.01, 0.98, 1.03}, "divider_bound"), third = attempt(3, true, {1.6, 1.5, 1.7}, "scalar_tail"), fourth = attempt(4, false, {1.2, 1.1, 1.3}, "divider_bound");
  const auto unnamed = attempt(5, false, {0.9, 0.8, 0.95}), uncompared = attempt(6, false, {}, "scalar_tail");
  const std::vector<iteration_record> history = {first, second, third, fourth, unnamed, uncompared};
  const auto found = outcomes_of(history);
  REQUIRE(found.size() == 2); // the third is the best from there on, and has no findings
  CHECK(found[0].rule == "divider_bound");
  CHECK(found[0].predicted == Approx(1.5));
  CHECK(found[0].brought == Approx(1.01));
  CHECK_FALSE(found[0].better);
  CHECK(found[1].predicted == 0);
  CHECK(found[1].better);
}

TEST_CASE("a rule that misleads loses weight, one that keeps its word does not") {
  machine_scores known{"cpu", {}};
  CHECK(weight_of(scores_of(known), "divider_bound") == 1);
  for (int i = 0; i < 10; ++i) learn(known, run_with("bad" + std::to_string(i), false, 1.0));
  const auto bad = scores_of(known);
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].followed == 10);
  CHECK(bad[0].predicted == 10);
  CHECK(bad[0].near == 0);
  CHECK(std::exp(bad[0].log_ratio / bad[0].predicted) == Approx(1 / 1.5));
  CHECK(weight_of(bad, "divider_bound") == Approx(4.0 / 12));
  std::vector<finding> findings = {promising(bottleneck::divider_bound, 0.8, 1, 0.5), promising(bottleneck::scalar_tail, 0.5, 1, 0.9)};
  weigh(findings, bad);
  CHECK(findings.front().what == bottleneck::scalar_tail);
  machine_scores good{"cpu", {}};
  for (int i = 0; i < 10; ++i) learn(good, run_with("good" + std::to_string(i), true, 1.45));
  CHECK(weight_of(scores_of(good), "divider_bound") == 1);
  CHECK(scores_of(good)[0].near == 10);
}

TEST_CASE("a run that goes on replaces what it said, and the list does not grow for ever") {
  machine_scores known{"cpu", {}};
  learn(known, run_with("a", true, 1.5));
  learn(known, run_with("a", false, 1.0));
  REQUIRE(known.runs.size() == 1);
  CHECK(scores_of(known)[0].better == 0);
  learn(known, {"a", "task", "", {}});
  CHECK(known.runs.empty());
  for (size_t i = 0; i < most_scored_runs + 20; ++i) learn(known, run_with(std::to_string(i), true, 1.5));
  CHECK(known.runs.size() == most_scored_runs);
  CHECK(known.runs.back().run == std::to_string(most_scored_runs + 19));
  CHECK(json(known).get<machine_scores>().runs.size() == most_scored_runs);
}
