// Candidates of parts (kernels/parts.hpp) on the machine that has the hardware. There is no process that runs only them: they are drop-ins from the start.
#include "actors/as_called.hpp"
#include "actors/workbench.hpp"

#include "base/seconds.hpp"
#include "drop_in/drop_in.hpp"
#include "kernels/parts.hpp"

#include <algorithm>
#include <chrono>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

verdict passed(const std::string& checked) {
  verdict v;
  v.stage = verdict_stage::passed;
  if (!checked.empty()) v.checked.push_back(checked);
  return v;
}

} // namespace

expected<const written_winner*> workbench::whole_of(const candidate& c) {
  if (whole_ && whole_->first == c.id()) return &whole_->second;
  whole_.reset();
  auto written = write_winner(loaded_.task, c, request_, cancel_);
  if (!written) return fail(written.error());
  if (torch_compiled_) written->options.torch_compiled = torch_compiled_->path();
  whole_.emplace(c.id(), std::move(*written));
  return &whole_->second;
}

expected<verdict> workbench::verify_parts(const candidate& c) {
  const auto start = clock::now();
  const auto whole = whole_of(c);
  if (!whole) return fail(whole.error());
  auto options = (*whole)->options;
  options.seeds = request_.seeds;
  auto checked = check_drop_in((*whole)->place.path(), loaded_.task, options);
  verdict result;
  if (checked) {
    result = passed(checked->message);
  } else if (is_candidates_fault(checked.error())) {
    result.stage = verdict_stage::compare;
    result.reason = checked.error().message;
  } else {
    return fail(checked.error());
  }
  result.verify_seconds = seconds_since(start);
  return result;
}

expected<confirmation> workbench::confirm_parts(const candidate& c, int processes) {
  if (auto may = can_time_parts(request_); !may) return fail(may.error());
  auto p = parts_of(c);
  if (!p) return fail(p.error());
  confirmation result;
  result.verdict = passed("");
  // What its process may say: not less than the kernels alone.
  result.kernel.candidate_seconds = kernel_seconds(*p);
  const auto whole = whole_of(c);
  if (!whole) return fail(whole.error());
  if (auto called = call_drop_in(**whole, loaded_.task, request_, loaded_.torch, result, processes); !called) return fail(called.error());
  if (result.verdict.passed() && !result.not_called.empty()) return fail(ec::measurement_failed, "a drop-in of parts has no figure but the one as called: " + result.not_called);
  if (processes == 1 || !result.verdict.passed()) return result;
  if (auto operators = reference_->operators()) result.torch = std::move(*operators); // for the story: a run does without
  if (request_.where().on_device()) reference_.reset(); // a profiler leaves its hooks in the driver
  return result;
}

expected<measurement> workbench::measure_parts(const measure_request& request) {
  const auto start = clock::now();
  auto called = confirm_parts(request.candidate, 1);
  if (!called) return fail(called.error());
  measurement result;
  result.verdict = called->verdict.passed() ? request.verdict : called->verdict;
  result.profile.candidate = request.candidate.id();
  result.profile.device = loaded_.cpu;
  result.profile.backend = request_.backend;
  result.profile.time = called->time;
  result.time_seconds = seconds_since(start);
  const auto& s = result.profile.time.speedup;
  if (request.has_best && request.best_speedup.value > 0) {
    result.against_best = result.profile.time;
    result.against_best.baseline = "best, by way of the reference";
    result.against_best.speedup = {s.value / request.best_speedup.value, s.low / request.best_speedup.high, s.high / request.best_speedup.low};
  }
  return result;
}

} // namespace pragma
