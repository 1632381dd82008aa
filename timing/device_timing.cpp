#include "timing/device_timing.hpp"

#include "base/seconds.hpp"
#include "base/text.hpp"
#include "timing/device_audit.hpp"
#include "timing/time_pair.hpp"
#include "execution/contention.hpp"
#include "devices/device_lease.hpp"
#include "kernels/seeds.hpp"
#include "verification/slot_checker.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

namespace pragma {

namespace {

/// Seconds of a call. Below it what launches from Python take is seen in the events (a network has hundreds): both sides are replayed from captured graphs, where both can be captured.
constexpr double graphs_below = 20e-3;
/// Seconds of a call. Below it, and without graphs, the launch is part of what a user waits for: our own clock around the calls counts.
constexpr double short_call = 50e-6;
/// The device's clock advances in at least this part of the wall-clock time; the limit on a whole comparison is set by it, so that it stays finite.
constexpr double least_share = 0.02;
/// CPU time of the candidate's process in a second in which the reference is timed. It waits on a pipe then, which takes none.
constexpr double most_idle_cpu = 0.1;
/// Comparisons that are made while another process works on the device in between.
constexpr int most_shared = 2;

using steady = std::chrono::steady_clock;

expected<std::shared_ptr<runner_process>> running(const build_output& built, const reference& ref, const timing_options& options) {
  if (built.kept && built.kept->runner && !built.kept->runner->usable()) built.kept->runner.reset();
  if (built.kept && built.kept->runner) {
    built.kept->runner->thaw();
    return built.kept->runner;
  }
  runner_options run;
  run.threads = options.threads;
  run.cancel = options.cancel;
  if (built.kept && built.kept->failure) return fail(*built.kept->failure);
  auto started = runner_process::start(built, ref, run);
  if (!started) {
    if (built.kept && is_candidates_fault(started.error())) built.kept->failure = started.error();
    return fail(started.error());
  }
  auto runner = std::make_shared<runner_process>(std::move(*started));
  if (built.kept) built.kept->runner = runner;
  return runner;
}

expected<double> reference_seconds(reference& ref, int64_t calls, device_clock_kind how) {
  if (how != device_clock_kind::our_clock) return ref.time(calls, how == device_clock_kind::graphs);
  const auto start = steady::now();
  if (auto ran = ref.run(calls); !ran) return fail(ran.error());
  return seconds_since(start);
}

/// Whether others work on the device: then calls wait for them or not as it happens, and neither clock tells how long a call takes.
expected<bool> device_is_shared(reference& ref, const device_choice& device) {
  const auto lease = lease_device(device);
  const auto share = ref.device_share();
  if (!share) return fail(share.error());
  return *share < least_device_share;
}

/// How two sides are timed whose calls take so long by events; both are captured where either is no long one.
template <class Left, class Right> expected<device_clock_kind> choose_clock(double left, double right, Left capture_left, Right capture_right) {
  if (std::min(left, right) >= graphs_below) return device_clock_kind::events;
  auto one = capture_left();
  if (!one) return fail(one.error());
  auto other = *one ? capture_right() : expected<bool>(false);
  if (!other) return fail(other.error());
  return *one && *other ? device_clock_kind::graphs : std::min(left, right) < short_call ? device_clock_kind::our_clock : device_clock_kind::events;
}

/// The first of these times that the machine cannot reach. All of the candidates stand still: to say so, the machine's limits may have to be measured.
expected<std::optional<finding_of_audit>> beyond_limits(const std::vector<runner_process*>& candidates, const std::vector<double>& seconds, const timing_options& options) {
  bool still = true;
  for (auto* one : candidates) still = one->freeze() && still;
  std::optional<finding_of_audit> found;
  for (const double one : seconds)
    if (still && !found) found = unbelievable(one, options);
  for (auto* one : candidates) one->thaw();
  if (!still) return fail(ec::tool_failed, "a candidate's process could not be stopped after it was timed");
  return found;
}

} // namespace

expected<void> keep_running(const build_output& built, const reference& ref, const timing_options& options) {
  if (!built.kept) return {};
  if (auto runner = running(built, ref, options); !runner) return fail(runner.error());
  return {};
}

namespace {

/// One look at a candidate beside the reference, in the process that its build keeps.
class device_session {
public:
  /// `forced`: how both sides are timed, where an earlier look has decided it.
  device_session(std::optional<device_clock_kind> forced, const task& t, const task_audit& audit, reference& ref, const build_output& built, const timing_options& options)
      : forced_(forced), audit_(audit), ref_(ref), built_(built), options_(options), seed_(seed_source().next() | 1), checker_(t, ref, options.tolerance, audit.tightening) {}

  /// The events see less of its calls than our clock does: it is to be looked at again, by our clock.
  bool doubtful() const { return doubtful_; }

  expected<timed_pair> run(const std::vector<std::string>& torch_operators) {
    for (const auto step : {&device_session::start, &device_session::first_look, &device_session::time, &device_session::nothing_in_between})
      if (auto done = (this->*step)(); !done || result_.found) return result_or(done);
    auto doubted = beyond_limits({side_->runner.get()}, {result_.time.candidate_seconds}, options_);
    if (!doubted) return fail(doubted.error());
    if (result_.found = std::move(*doubted); result_.found) return result_;
    if (lease_->owns_lock()) lease_->unlock(); // what follows asks for it as it needs it
    return result_or(audits(torch_operators));
  }

private:
  expected<timed_pair> result_or(const expected<void>& done) {
    if (!done) return fail(done.error());
    if (result_.found && built_.kept) built_.kept->runner.reset();
    return result_;
  }
  expected<void> found(verdict_stage stage, std::string reason, std::vector<mismatch> mismatches = {}, doubt why_not = doubt::none) {
    result_.found = finding_of_audit{stage, why_not, false, std::move(reason), std::move(mismatches)};
    return {};
  }
  expected<void> blame(const error& e, const std::string& when, verdict_stage stage = verdict_stage::run) {
    if (!is_candidates_fault(e)) return fail(e);
    return found(stage, e.message + when, {}, doubt_about(e));
  }

  /// Its process, and inputs there that it has not seen.
  expected<void> start() {
    if (const auto why = why_unverifiable(audit_.passing_nulls); !why.empty()) return found(verdict_stage::audit, why);
    auto runner = running(built_, ref_, options_);
    if (!runner) return blame(runner.error(), "", verdict_stage::load);
    const auto one_call = limit_of_call(ref_, shortest_device_command);
    if (!one_call) return fail(one_call.error());
    side_.emplace(*runner, ref_, *one_call);
    for (int slot = 0; slot < side_->slots; ++slot) {
      if (auto made = ref_.make_inputs(slot, seed_of_set(seed_, static_cast<int>(input_kind::own), slot + 1), input_kind::own); !made) return fail(made.error());
      checker_.refresh(slot, "unseen seed " + std::to_string(slot + 1));
    }
    audits_.emplace(*side_, built_.device, ref_, checker_, seed_);
    if (auto sent = side_->runner->upload(0, side_->slots, side_->timeout); !sent) return blame(sent.error(), "");
    return {};
  }

  /// Right on what it never saw, and how long a call takes on either side: that chooses the clock.
  expected<void> first_look() {
    lease_.emplace(lease_device(built_.device));
    const auto begin = steady::now();
    const auto looks = side_->few(probe_calls);
    auto mine = side_->events(looks, false);
    const double wall = seconds_since(begin);
    if (!mine) return blame(mine.error(), " (while it was timed)");
    auto right = audits_->results_are_right("before timing");
    if (!right) return blame(right.error(), " (before timing)");
    if (*right) return found(verdict_stage::compare, (*right)->reason, (*right)->mismatches);
    auto theirs = ref_.time(looks, false);
    if (!theirs) return fail(theirs.error());
    share_ = std::clamp(*mine / wall, least_share, 1.0);
    const auto calls = static_cast<double>(looks);
    auto how = choose_clock(*mine / calls, *theirs / calls, [&] { return side_->runner->capture(0, side_->slots, side_->limit(3 * side_->slots)); },
                            [&] { return ref_.capture(); });
    if (!how) return blame(how.error(), " (while its call was captured)");
    how_ = forced_.value_or(*how);
    look_ = seconds_since(begin);
    return {};
  }

  expected<timing> compared(const std::shared_ptr<error>& failure) {
    device_clock clock(options_, look_);
    const auto reference_side = [&](int64_t n) {
      const double before = session_cpu_seconds(side_->runner->pid());
      const auto begin = steady::now();
      auto seconds = reference_seconds(ref_, n, how_);
      const double wall_seconds = seconds_since(begin);
      const double after = session_cpu_seconds(side_->runner->pid());
      if (before >= 0 && after >= 0) {
        used_ += std::max(0.0, after - before); // less: a child is gone that nobody waited for
        baseline_wall_ += wall_seconds;
      }
      return seconds;
    };
    auto result = compare_times(side_->timed(clock, "candidate", how_, failure), clock.side(ref_.baseline_name(), ref_.pid(), reference_side),
                                clock.options(options_, how_ == device_clock_kind::our_clock ? 1.0 : share_));
    side_->runner->thaw();
    return result;
  }

  expected<void> time() {
    const auto failure = std::make_shared<error>();
    auto time = compared(failure);
    auto shared = device_is_shared(ref_, built_.device);
    for (int more = 1; time && shared && *shared && more < most_shared; ++more) { // somebody was at work for a moment
      time = compared(failure);
      shared = device_is_shared(ref_, built_.device);
    }
    if (!time) return failure->message.empty() ? expected<void>(fail(time.error())) : blame(*failure, " (while it was timed)");
    if (!shared) return fail(shared.error());
    shared_ = *shared;
    result_.time = std::move(*time);
    result_.time.cache = description(how_);
    if (const auto b = find_backend(built_.device.backend); b && b->on_device())
      if (const auto state = device_state(*b, built_.device.index); !state.empty()) result_.time.note = "device: " + state;
    if (lease_->disturbed())
      result_.time.note += (result_.time.note.empty() ? "" : "; ") + std::string("another PRAGMA process holds this device, and did not let go: both measure into each other");
    return {};
  }

  /// While nothing was asked of it, it did nothing: not here, not on the device.
  expected<void> nothing_in_between() {
    if (baseline_wall_ > 0 && used_ > most_idle_cpu * baseline_wall_)
      return found(verdict_stage::audit, "it used " + format_seconds(used_) + " of CPU time in the " + format_seconds(baseline_wall_) +
                                             " in which the reference was being timed: it slows the reference down");
    return shared_ ? busy_in_between() : expected<void>();
  }

  /// That the device is free when the candidate has ended speaks against the candidate, and proves nothing: another process may have ended then, too. So nobody is
  /// accused. Who does work in the background is never established, and gains nothing.
  expected<void> busy_in_between() {
    side_->runner->end();
    const auto still = device_is_shared(ref_, built_.device);
    if (!still) return fail(still.error());
    if (*still) return fail(device_is_shared_error());
    return found(verdict_stage::not_established,
                 "the device was busy while nothing was asked of the candidate, and is not since its process has ended: it works in the background, or somebody else did just then", {},
                 doubt::machine_busy);
  }

  /// What another process on the device could explain, too: when the candidate has ended, its own work has.
  expected<void> found_unless_shared(const finding_of_audit& seen) {
    side_->runner->end();
    const auto still = device_is_shared(ref_, built_.device);
    if (!still) return fail(still.error());
    if (*still) return fail(device_is_shared_error());
    result_.found = seen;
    return {};
  }

  expected<void> audits(const std::vector<std::string>& torch_operators) {
    const double call_seconds = result_.time.candidate_seconds;
    for (const auto step : {0, 1, 2, 3, 4}) {
      auto seen = step == 0   ? audits_->results_are_right("after timing")
                  : step == 1 ? audits_->clock_agrees(call_seconds, how_, doubtful_)
                  : step == 2 ? audits_->alone_as_among_many(call_seconds, how_)
                  : step == 3 ? audits_->unseen_is_as_fast(call_seconds, how_)
                              : audits_->calls_as_before(torch_operators, call_seconds, how_);
      if (!seen) return blame(seen.error(), " (after timing)");
      if (*seen && step == 1 && (*seen)->mismatches.empty()) return found_unless_shared(**seen);
      if (*seen) {
        result_.found = std::move(*seen);
        return {};
      }
      if (doubtful_) return {};
    }
    result_.checked = {"results of the timed calls, on unseen seeds",
                       how_ == device_clock_kind::our_clock ? "timed by our clock" : "our clock agrees with the device's events",
                       "a call alone takes as long as one among many", "unseen inputs take as long as seen ones"};
    return {};
  }

  std::optional<device_clock_kind> forced_;
  const task_audit& audit_;
  reference& ref_;
  const build_output& built_;
  const timing_options& options_;
  uint64_t seed_;
  slot_checker checker_;
  std::optional<device_side> side_;
  std::optional<device_audit> audits_;
  std::optional<device_lease> lease_;
  device_clock_kind how_ = device_clock_kind::events;
  double share_ = 1, look_ = 0;
  double used_ = 0, baseline_wall_ = 0; ///< CPU time of the candidate and its children while the reference is timed, and how long that was
  bool shared_ = false, doubtful_ = false;
  timed_pair result_;
};

} // namespace

expected<timed_pair> time_pair_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                         const std::vector<std::string>& torch_operators, const timing_options& options) {
  const bool decided = built.kept && built.kept->by_our_clock;
  device_session session(decided ? std::optional(device_clock_kind::our_clock) : std::nullopt, t, audit, ref, built, options);
  auto pair = session.run(torch_operators);
  if (!pair || pair->found || !session.doubtful()) return pair;
  if (built.kept) built.kept->by_our_clock = true; // in comparisons with others, too
  return device_session(device_clock_kind::our_clock, t, audit, ref, built, options).run(torch_operators);
}

namespace {

/// Two candidates, each in the process that it has: a device's memory is placed alike in every process. With the audits of device_session that need no
/// reference at work.
class device_pair {
public:
  device_pair(const task& t, const task_audit& audit, reference& ref, const build_output& challenger, const build_output& champion, const timing_options& options)
      : ref_(ref), built_{&challenger, &champion}, options_(options), checker_(t, ref, options.tolerance, audit.tightening), seed_(seed_source().next() | 1) {}

  expected<side_by_side> run() {
    if (auto ready = prepare(); !ready) return over(ready.error());
    for (int comparison = 0; comparison < most_shared; ++comparison) {
      if (auto timed = time(); !timed) return over(timed.error());
      const auto shared = device_is_shared(ref_, built_[0]->device);
      if (!shared) return fail(shared.error());
      if (*shared) continue;
      if (!answer_.result.established()) return answer_;
      auto again = audit();
      if (!again) return over(again.error());
      if (*again) continue; // by our clock, which sees more than the events
      return answer_;
    }
    return fail(device_is_shared_error());
  }

private:
  /// An error ends the comparison, or is what the side at work failed with.
  expected<side_by_side> over(const error& e) {
    if (answer_.failed != failed_side::none) return answer_;
    if (!is_candidates_fault(e)) return fail(e);
    return refuse(verdict_stage::run, e.message, doubt_about(e));
  }
  side_by_side refuse(verdict_stage stage, const std::string& reason, doubt why_not = doubt::none) {
    answer_.failed = at_ == 0 ? failed_side::challenger : failed_side::champion;
    answer_.result.why_not = why_not;
    answer_.result.stage = stage;
    answer_.result.reason = reason;
    return answer_;
  }

  expected<void> prepare() {
    const auto one_call = limit_of_call(ref_, shortest_device_command);
    if (!one_call) return fail(one_call.error());
    for (at_ = 0; at_ < 2; ++at_) {
      auto runner = running(*built_[at_], ref_, options_);
      if (!runner) {
        // The challenger has been timed: where the best finds no place beside it, that ends the comparison and not the run.
        if (at_ == 1 && runner.error().code != ec::interrupted) refuse(verdict_stage::load, runner.error().message, doubt_about(runner.error()));
        return fail(runner.error());
      }
      sides_.emplace_back(*runner, ref_, *one_call);
    }
    for (int slot = 0; slot < ref_.slots(); ++slot) {
      if (auto made = ref_.make_inputs(slot, seed_of_set(seed_, static_cast<int>(input_kind::own), slot + 1), input_kind::own); !made) return fail(made.error());
      checker_.refresh(slot, "unseen seed " + std::to_string(slot + 1));
    }
    const auto lease = lease_device(built_[0]->device);
    double call_seconds[2] = {0, 0};
    const auto begin = steady::now();
    for (at_ = 0; at_ < 2; ++at_) {
      const auto& side = sides_[at_];
      if (auto sent = side.runner->upload(0, side.slots, side.timeout); !sent) return fail(sent.error());
      const auto looks = side.few(probe_calls);
      const auto start = steady::now();
      auto seconds = side.events(looks, false);
      if (!seconds) return fail(seconds.error());
      call_seconds[at_] = *seconds / static_cast<double>(looks);
      share_ = std::min(share_, std::clamp(*seconds / seconds_since(start), least_share, 1.0));
    }
    look_ = seconds_since(begin);
    const auto capture = [&](size_t i) {
      at_ = i;
      return sides_[i].runner->capture(0, sides_[i].slots, sides_[i].limit(3 * sides_[i].slots));
    };
    auto how = choose_clock(call_seconds[0], call_seconds[1], [&] { return capture(0); }, [&] { return capture(1); });
    if (!how) return fail(how.error());
    how_ = *how;
    for (const auto* built : built_)
      if (built->kept && built->kept->by_our_clock) how_ = device_clock_kind::our_clock;
    return {};
  }

  expected<void> time() {
    const auto lease = lease_device(built_[0]->device);
    std::shared_ptr<error> failures[2] = {std::make_shared<error>(), std::make_shared<error>()};
    device_clock clock(options_, look_);
    auto time = compare_times(sides_[0].timed(clock, "challenger", how_, failures[0]), sides_[1].timed(clock, "best", how_, failures[1]),
                              clock.options(options_, how_ == device_clock_kind::our_clock ? 1.0 : share_));
    for (const auto& side : sides_) side.runner->thaw();
    for (at_ = 0; at_ < 2; ++at_)
      if (!failures[at_]->message.empty()) return fail(*failures[at_]);
    at_ = 0;
    if (!time) return fail(ec::measurement_failed, time.error().message, time.error().hint);
    answer_.time = std::move(*time);
    answer_.time.cache = description(how_);
    const auto doubted = beyond_limits({sides_[0].runner.get(), sides_[1].runner.get()}, {answer_.time.candidate_seconds, answer_.time.baseline_seconds}, options_);
    if (!doubted) return fail(doubted.error());
    if (*doubted) {
      answer_.result.stage = (*doubted)->stage;
      answer_.result.why_not = (*doubted)->why_not;
      answer_.result.reason = (*doubted)->reason;
      return {};
    }
    answer_.result.stage = verdict_stage::passed;
    return {};
  }

  /// True: to be timed again by our clock. Each failure is refuse()d.
  expected<bool> audit() {
    const double seconds[2] = {answer_.time.candidate_seconds, answer_.time.baseline_seconds};
    for (at_ = 0; at_ < 2; ++at_) {
      device_audit audits(sides_[at_], built_[at_]->device, ref_, checker_, seed_);
      bool doubtful = false;
      for (const int step : {0, 1, 2}) {
        auto found = step == 0   ? audits.results_are_right("after timing beside another")
                     : step == 1 ? audits.clock_agrees(seconds[at_], how_, doubtful)
                                 : audits.alone_as_among_many(seconds[at_], how_);
        if (!found) return fail(found.error());
        if (!*found) continue;
        const auto& seen = **found; // what times alone show is not established by one process
        refuse(seen.by_time ? verdict_stage::not_established : seen.stage, seen.reason, seen.by_time ? doubt::machine_busy : seen.why_not);
        return fail(ec::candidate_failed, seen.reason);
      }
      if (!doubtful) continue;
      if (built_[at_]->kept) built_[at_]->kept->by_our_clock = true;
      how_ = device_clock_kind::our_clock;
      return true;
    }
    return false;
  }

  reference& ref_;
  const build_output* built_[2];
  const timing_options& options_;
  slot_checker checker_;
  uint64_t seed_;
  std::vector<device_side> sides_;
  size_t at_ = 0; ///< the side that is at work
  device_clock_kind how_ = device_clock_kind::events;
  double share_ = 1, look_ = 0;
  side_by_side answer_;
};

} // namespace

expected<side_by_side> compare_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                         const build_output& champion, const timing_options& options) {
  return device_pair(t, audit, ref, challenger, champion, options).run();
}

} // namespace pragma
