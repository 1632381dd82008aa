#include "timing/time_pair.hpp"

#include "base/text.hpp"
#include "execution/contention.hpp"
#include "reference/call_limit.hpp"

#include <algorithm>
#include <memory>

namespace pragma {

namespace {

constexpr double shortest_timeout = 2; ///< seconds, of one call
constexpr double whole_command = 16;   ///< limits of a call that a command of many may take
constexpr double long_batch_seconds = 0.05; ///< of the batch that is compared after timing

/// A side whose failure is remembered, so that one side's fault is told from the other's.
timed_side watched(timed_side side, std::shared_ptr<error> failure) {
  const auto keep = [failure](expected<void> done) {
    if (!done) *failure = done.error();
    return done;
  };
  side.run = [run = std::move(side.run), keep](int64_t calls) { return keep(run(calls)); };
  if (side.wake) side.wake = [wake = std::move(side.wake), keep] { return keep(wake()); };
  return side;
}

timed_side side_of(reference& ref) {
  timed_side side;
  side.name = ref.baseline_name();
  side.reference = true;
  side.cycle = ref.slots();
  side.pid = ref.pid();
  side.run = [&ref](int64_t calls) { return ref.run(calls); };
  return side;
}

timed_side side_of(runner_process& runner, int slots, std::string name, double timeout_seconds) {
  timed_side side;
  side.name = std::move(name);
  side.pid = runner.pid();
  side.cycle = slots;
  side.run = [&runner, slots, timeout_seconds](int64_t calls) { return runner.call(0, slots, calls, timeout_seconds); };
  side.seconds = [&runner] { return runner.last_call().seconds; };
  return side;
}

class pair_session {
public:
  pair_session(const task& t, const task_audit& audit, reference& ref, const contender& first, const contender& second, const timing_options& options)
      : task_(t), ref_(ref), who_{first, second}, options_(options), checker_(t, ref, options.tolerance, audit.tightening),
        seed_(options.input_seed ? options.input_seed : seed_source().next()) {}

  expected<timed_pair> run() {
    if (auto ready = prepare(); !ready) return fail(ready.error());
    if (result_.found) return result_;
    for (size_t side : {0, 1}) {
      if (!audits_[side]) continue;
      if (auto done = settle(side, audits_[side]->batch_is_right(ref_.slots(), "before timing")); !done) return fail(done.error());
      if (result_.found && result_.found->stage == verdict_stage::audit) result_.found->stage = verdict_stage::compare;
      if (result_.found) return result_;
    }
    if (auto timed = time(); !timed) return fail(timed.error());
    for (size_t side = 0; side < 2 && !result_.found; ++side)
      if (audits_[side])
        if (auto done = audit(side, side == 0 ? result_.time.candidate_seconds : result_.time.baseline_seconds); !done) return fail(done.error());
    if (!result_.found)
      result_.checked = {"right in a fresh process on unseen seeds, before, in and after the timed batches", "unseen inputs take as long as seen ones",
                         "inputs exchanged in the middle of a batch are answered", "stands still between calls"};
    return result_;
  }

private:
  void found(size_t side, verdict_stage stage, std::string reason) {
    result_.side = side;
    result_.found = finding_of_audit{stage, doubt::none, false, std::move(reason), {}};
  }

  expected<void> settle(size_t side, timing_audit::result answer) {
    if (!answer) return fail(answer.error());
    if (!*answer) return {};
    result_.side = side;
    result_.found = std::move(**answer);
    result_.log = runners_[side]->log();
    return {};
  }

  /// Processes, which stand still but for their calls; then inputs that they have not seen.
  expected<void> prepare() {
    const auto limit = limit_of_call(ref_, shortest_timeout);
    if (!limit) return fail(limit.error());
    timeout_ = limit->seconds;
    runner_options run;
    run.threads = options_.threads;
    run.cpus = measuring_cpus(options_.threads);
    run.cancel = options_.cancel;
    for (size_t side : {0, 1}) {
      if (!who_[side].built) continue;
      auto started = runner_process::start(*who_[side].built, ref_, run);
      if (!started && !is_candidates_fault(started.error())) return fail(started.error());
      if (!started) {
        found(side, verdict_stage::load, started.error().message);
        return {};
      }
      runners_[side] = std::make_unique<runner_process>(std::move(*started));
      audits_[side] = std::make_unique<timing_audit>(task_, ref_, *runners_[side], checker_, seed_, options_, run.cpus, timeout_);
    }
    for (int slot = 0; slot < ref_.slots(); ++slot) {
      const auto seed = seed_of_set(seed_, static_cast<int>(input_kind::own), slot + 1);
      if (auto made = ref_.make_inputs(slot, seed, input_kind::own, options_.keep_sets); !made) return fail(made.error());
      checker_.refresh(slot, "unseen seed " + std::to_string(slot + 1) + " in a fresh process");
    }
    return {};
  }

  expected<void> time() {
    std::shared_ptr<error> failures[2] = {std::make_shared<error>(), std::make_shared<error>()};
    const auto side = [&](size_t i) {
      return runners_[i] ? watched(side_of(*runners_[i], ref_.slots(), who_[i].name, timeout_ * whole_command), failures[i]) : side_of(ref_);
    };
    auto time = compare_times(side(0), side(1), options_);
    for (size_t i : {0, 1})
      if (!failures[i]->message.empty() && is_candidates_fault(*failures[i])) {
        found(i, verdict_stage::run, failures[i]->message + " (while it was timed)");
        result_.log = runners_[i]->log();
        return {};
      }
    if (!time) return fail(time.error());
    result_.time = std::move(*time);
    for (size_t i : {0, 1}) {
      const double seconds = i == 0 ? result_.time.candidate_seconds : result_.time.baseline_seconds;
      if (runners_[i] && !result_.found) result_.found = unbelievable(seconds, options_);
      if (result_.found) result_.side = i;
      if (result_.found) break;
    }
    return {};
  }

  expected<void> audit(size_t side, double call_seconds) {
    auto& audits = *audits_[side];
    // Longer than the samples: who counts on the length of a batch may leave out calls of long ones only.
    const auto batch_calls = static_cast<int64_t>(std::max(options_.sample_seconds, long_batch_seconds) / std::max(call_seconds, 1e-9));
    for (const int step : {0, 1, 2}) {
      auto answer = step == 0   ? audits.batch_is_right(std::clamp<int64_t>(batch_calls, ref_.slots(), 1'000'000), "after timing")
                    : step == 1 ? audits.work_is_done_on_every_call(call_seconds)
                                : audits.batch_follows_its_inputs(call_seconds);
      if (auto done = settle(side, std::move(answer)); !done || result_.found) return done;
    }
    return {};
  }

  const task& task_;
  reference& ref_;
  contender who_[2];
  const timing_options& options_;
  slot_checker checker_;
  uint64_t seed_;
  double timeout_ = shortest_timeout;
  std::unique_ptr<runner_process> runners_[2];
  std::unique_ptr<timing_audit> audits_[2];
  timed_pair result_;
};

} // namespace

std::optional<finding_of_audit> unbelievable(double seconds, const timing_options& options) {
  const auto limit = options.beyond_limits ? options.beyond_limits(seconds) : std::string();
  if (limit.empty()) return std::nullopt;
  return finding_of_audit{verdict_stage::not_established, doubt::unbelievable, true,
                          "a call seems to take " + format_seconds(seconds) + ", less than the machine's measured " + limit + " allows: this measurement is not believed", {}};
}

expected<timed_pair> time_pair(const task& t, const task_audit& audit, reference& ref, const contender& first, const contender& second,
                               const timing_options& options) {
  if (const auto why = why_unverifiable(audit.passing_nulls); !why.empty()) {
    timed_pair refused;
    refused.found = finding_of_audit{verdict_stage::audit, doubt::none, false, why, {}};
    return refused;
  }
  return pair_session(t, audit, ref, first, second, options).run();
}

} // namespace pragma
