// What a coding agent reads of an examination: three values of a verdict, and no figure where none was established.
#include "cli/mcp_tools.hpp"

#include <catch2/catch.hpp>

using namespace pragma;
using Catch::Contains;

namespace {

examination measured(const interval& speedup) {
  examination e;
  e.verdict.stage = verdict_stage::passed;
  e.verdict.checked = {"own inputs"};
  e.measured = true;
  e.profile.time.speedup = speedup;
  e.profile.time.baseline = "torch eager";
  e.profile.time.baseline_seconds = 2e-3;
  e.profile.time.candidate_seconds = 1e-3;
  return e;
}

} // namespace

TEST_CASE("mcp: right, not accepted and not established are three things, and the last accuses nobody") {
  examination e;
  e.verdict.stage = verdict_stage::compare;
  e.verdict.reason = "element [0] is wrong";
  CHECK_THAT(cli::examination_text(e), Contains("NOT ACCEPTED at compare: element [0] is wrong"));
  e.verdict.stage = verdict_stage::not_established;
  e.verdict.why_not = doubt::machine_busy;
  e.verdict.reason = "other work was running";
  CHECK_THAT(cli::examination_text(e), Contains("NOT ESTABLISHED: other work was running") && Contains("says nothing of the kernel; call again") && !Contains("NOT ACCEPTED"));
  e.verdict.why_not = doubt::out_of_memory;
  CHECK_THAT(cli::examination_text(e), Contains("says nothing of the kernel.") && !Contains("call again"));
  CHECK_THAT(cli::examination_text(measured({2, 1.9, 2.1})), Contains("RIGHT") && Contains("2.00x (95% 1.90-2.10) against torch eager"));
}

TEST_CASE("mcp: an interval that holds 1 establishes no difference, and no timing is no figure") {
  CHECK_THAT(cli::examination_text(measured({1.02, 0.98, 1.05})), Contains("no difference established"));
  CHECK_THAT(cli::examination_text(measured({0, 0, 0})), Contains("not established against torch eager") && !Contains("0.00x"));
  auto e = measured({2, 1.9, 2.1});
  e.compared = true;
  e.side_by_side.speedup = {0.99, 0.97, 1.01};
  CHECK_THAT(cli::examination_text(e), Contains("Side by side: 0.99x (95% 0.97-1.01), no difference established, against the other candidate"));
}
