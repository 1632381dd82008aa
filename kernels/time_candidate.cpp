#include "kernels/timing.hpp"

#include "base/text.hpp"
#include "kernels/call_limit.hpp"
#include "kernels/contention.hpp"
#include "kernels/device_timing.hpp"
#include "kernels/seeds.hpp"
#include "kernels/timing_audit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

namespace pragma {

namespace {

constexpr double shortest_timeout = 2;      ///< seconds, of one call
constexpr int fresh_processes = 3;          ///< of a comparison of two candidates
constexpr double baseline_disturbance = 0.1; ///< CPU time of the candidate over the reference's samples: above it, it cheats

using clock = std::chrono::steady_clock;
double since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

runner_options runner_for(const timing_options& options) {
  runner_options run;
  run.threads = options.threads;
  run.cpus = measuring_cpus(options.threads);
  run.cancel = options.cancel;
  return run;
}

bool is_candidates_fault(const error& e) { return e.code == ec::candidate_failed || e.code == ec::timeout; }

/// The limit of one call, from what the reference needs.
expected<double> call_timeout(reference& ref) {
  const auto limit = limit_of_call(ref, shortest_timeout);
  if (!limit) return fail(limit.error());
  return limit->seconds;
}

} // namespace

double chosen_tolerance(const task& t, const reference& ref, const verdict& earlier, const task_audit& audit) {
  const slot_checker usual(t, ref, 0, audit.tightening);
  for (size_t i = 0; i < t.outputs.size(); ++i)
    if (is_floating(t.outputs[i].dtype)) return earlier.tolerance > 0 && earlier.tolerance != usual.tolerance(i) ? earlier.tolerance / audit.tightening : 0;
  return 0;
}

namespace {

/// A side whose failure is remembered, so that the candidate's fault is told from the reference's.
timed_side watched(timed_side side, std::shared_ptr<error> failure) {
  side.run = [run = std::move(side.run), failure](int64_t calls) -> expected<void> {
    auto ran = run(calls);
    if (!ran) *failure = ran.error();
    return ran;
  };
  return side;
}

/// CPU time that a candidate uses while somebody else is being measured.
struct disturbance {
  double used = 0, wall = 0;
  bool serious() const { return wall > 0 && used > baseline_disturbance * wall; }
};
timed_side undisturbed(timed_side baseline, pid_t other, std::shared_ptr<disturbance> seen) {
  baseline.run = [run = std::move(baseline.run), other, seen](int64_t calls) -> expected<void> {
    const double before = cpu_seconds(other);
    const auto start = clock::now();
    auto ran = run(calls);
    const double after = cpu_seconds(other);
    if (before >= 0 && after >= 0) {
      seen->used += after - before;
      seen->wall += since(start);
    }
    return ran;
  };
  return baseline;
}

/// The one with the median ratio, its interval widened to hold all others.
timing median_of(std::vector<timing> times) {
  std::sort(times.begin(), times.end(), [](const timing& a, const timing& b) { return a.speedup.value < b.speedup.value; });
  auto result = times[times.size() / 2];
  result.blocks_accepted = result.blocks_tried = 0;
  result.calls = 0;
  result.contended = false;
  for (const auto& t : times) {
    result.speedup.low = std::min(result.speedup.low, t.speedup.low);
    result.speedup.high = std::max(result.speedup.high, t.speedup.high);
    result.blocks_accepted += t.blocks_accepted;
    result.blocks_tried += t.blocks_tried;
    result.calls += t.calls;
    result.contended = result.contended || t.contended;
  }
  return result;
}

} // namespace

timed_side side_of(reference& ref) {
  timed_side side;
  side.name = ref.baseline_name();
  side.pid = ref.pid();
  side.run = [&ref](int64_t calls) { return ref.run(calls); };
  return side;
}

timed_side side_of(runner_process& runner, int slots, std::string name, double timeout_seconds) {
  timed_side side;
  side.name = std::move(name);
  side.pid = runner.pid();
  side.run = [&runner, slots, timeout_seconds](int64_t calls) { return runner.call(0, slots, calls, timeout_seconds); };
  return side;
}

expected<timed_verdict> time_candidate(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& options) {
  if (built.language == "triton") return time_on_device(t, audit, ref, built, earlier, options);
  timed_verdict answer;
  answer.result = earlier;
  answer.result.binary = built.binary_hash;
  const auto refuse = [&](verdict_stage stage, std::string reason, std::vector<mismatch> mismatches = {}) {
    answer.result.stage = stage;
    answer.result.reason = std::move(reason);
    if (!mismatches.empty()) answer.result.mismatches = std::move(mismatches);
    return answer;
  };
  if (const auto why = why_unverifiable(audit); !why.empty()) return refuse(verdict_stage::audit, why);

  const auto run = runner_for(options);
  auto runner = runner_process::start(built, ref, run);
  if (!runner) {
    if (is_candidates_fault(runner.error())) return refuse(verdict_stage::load, runner.error().message);
    return fail(runner.error());
  }
  const uint64_t input_seed = options.input_seed ? options.input_seed : seed_source().next();
  slot_checker checker(t, ref, chosen_tolerance(t, ref, earlier, audit), audit.tightening);
  for (int slot = 0; slot < ref.slots(); ++slot) {
    const auto seed = seed_of_set(input_seed, static_cast<int>(input_kind::own), slot + 1);
    if (auto made = ref.make_inputs(slot, seed, input_kind::own, options.keep_sets); !made) return fail(made.error());
    checker.refresh(slot, "unseen seed " + std::to_string(slot + 1) + " in a fresh process");
  }
  auto timeout = call_timeout(ref);
  if (!timeout) return fail(timeout.error());

  timing_audit audits(t, ref, *runner, checker, input_seed, options, run.cpus, *timeout);
  const auto settle = [&](timing_audit::result found) -> expected<bool> { // true: a verdict was reached
    if (!found) return fail(found.error());
    if (!*found) return false;
    refuse((*found)->stage, (*found)->reason, (*found)->mismatches);
    answer.result.log = runner->log();
    return true;
  };
  auto first = settle(audits.batch_is_right(ref.slots(), "before timing"));
  if (!first) return fail(first.error());
  if (*first) {
    if (answer.result.stage == verdict_stage::audit) answer.result.stage = verdict_stage::compare;
    return answer;
  }

  auto failure = std::make_shared<error>();
  auto disturbed = std::make_shared<disturbance>();
  auto time = compare_times(watched(side_of(*runner, ref.slots(), "candidate", *timeout * 16), failure),
                            undisturbed(side_of(ref), runner->pid(), disturbed), options);
  if (!time) {
    if (!failure->message.empty() && is_candidates_fault(*failure))
      return refuse(verdict_stage::run, failure->message + " (while it was timed)");
    return fail(time.error());
  }
  answer.time = *time;
  if (disturbed->serious())
    return refuse(verdict_stage::audit, "it used " + format_seconds(disturbed->used) + " of CPU time in the " +
                                            format_seconds(disturbed->wall) + " in which the reference was being timed: it slows the reference down");

  const double call_seconds = time->candidate_seconds;
  const auto sample_calls = static_cast<int64_t>(options.sample_seconds / std::max(call_seconds, 1e-9));
  for (const auto& step : {0, 1, 2, 3}) {
    auto found = step == 0   ? audits.batch_is_right(std::clamp<int64_t>(sample_calls, ref.slots(), 1'000'000), "after timing")
                 : step == 1 ? audits.work_is_done_on_every_call(call_seconds)
                 : step == 2 ? audits.batch_follows_its_inputs(call_seconds)
                             : audits.rests_between_calls();
    auto reached = settle(std::move(found));
    if (!reached) return fail(reached.error());
    if (*reached) return answer;
  }
  answer.result.checked.push_back("right in a fresh process on unseen seeds, before, in and after the timed batches");
  answer.result.checked.push_back("unseen inputs take as long as seen ones");
  answer.result.checked.push_back("inputs exchanged in the middle of a batch are answered");
  answer.result.checked.push_back("rests between calls");
  return answer;
}

expected<timing> compare_candidates(reference& ref, const build_output& challenger, const build_output& champion,
                                    const timing_options& options, failed_side* failed) {
  if (challenger.language == "triton") return compare_on_device(ref, challenger, champion, options, failed);
  const auto run = runner_for(options);
  auto timeout = call_timeout(ref);
  if (!timeout) return fail(timeout.error());
  auto share = options;
  share.max_seconds /= fresh_processes;
  share.blocks = std::max(defaults::min_accepted_blocks, options.blocks / fresh_processes);
  share.repetitions /= fresh_processes;
  std::vector<timing> times;
  for (int i = 0; i < fresh_processes; ++i) {
    const auto blame = [&](failed_side side, const error& e) {
      if (failed && is_candidates_fault(e)) *failed = side;
      return fail(e);
    };
    auto left = runner_process::start(challenger, ref, run);
    if (!left) return blame(failed_side::challenger, left.error());
    auto right = runner_process::start(champion, ref, run);
    if (!right) return blame(failed_side::champion, right.error());
    auto problem = std::make_shared<error>(), problem_of_best = std::make_shared<error>();
    auto time = compare_times(watched(side_of(*left, ref.slots(), "challenger", *timeout * 16), problem),
                              watched(side_of(*right, ref.slots(), "best", *timeout * 16), problem_of_best), share);
    if (!problem->message.empty()) return blame(failed_side::challenger, *problem);
    if (!problem_of_best->message.empty()) return blame(failed_side::champion, *problem_of_best);
    if (!time) return time;
    times.push_back(std::move(*time));
  }
  return median_of(std::move(times));
}

} // namespace pragma
