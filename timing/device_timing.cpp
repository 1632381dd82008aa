#include "timing/device_timing.hpp"

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

constexpr double graphs_below = 2e-3;        ///< launches from Python, on either side, are no time of a call: graphs where they can be had
constexpr double short_call = 50e-6;         ///< below it a launch counts for as much as the call: our own clock where there are no graphs
constexpr double least_share = 0.02;         ///< of the wall-clock time that a device's clock may advance in
constexpr int most_shared = 2;               ///< comparisons, where somebody else was at work during the first

using way = device_clock_kind;
using steady = std::chrono::steady_clock;
double since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

bool is_candidates_fault(const error& e) { return e.code == ec::candidate_failed || e.code == ec::timeout; }

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

expected<double> reference_seconds(reference& ref, int64_t calls, way how) {
  if (how != way::our_clock) return ref.time(calls, how == way::graphs);
  const auto start = steady::now();
  if (auto ran = ref.run(calls); !ran) return fail(ran.error());
  return since(start);
}

/// Whether others work on the device: then calls wait for them or not as it happens, and neither clock tells how long a call takes.
expected<bool> device_is_shared(reference& ref, const device_choice& device) {
  const auto lease = lease_device(device);
  const auto share = ref.device_share();
  if (!share) return fail(share.error());
  return *share < least_device_share;
}

/// The way for two sides whose calls take so long by events; both are captured where either is no long one.
template <class Left, class Right> expected<way> choose_way(double left, double right, Left capture_left, Right capture_right) {
  if (std::min(left, right) >= graphs_below) return way::events;
  auto one = capture_left();
  if (!one) return fail(one.error());
  auto other = *one ? capture_right() : expected<bool>(false);
  if (!other) return fail(other.error());
  return *one && *other ? way::graphs : std::min(left, right) < short_call ? way::our_clock : way::events;
}

} // namespace

expected<void> keep_running(const build_output& built, const reference& ref, const timing_options& options) {
  if (!built.kept) return {};
  if (auto runner = running(built, ref, options); !runner) return fail(runner.error());
  return {};
}

namespace {

/// `forced`: the way to time both sides, where an earlier look has decided it.
expected<timed_verdict> time_by(std::optional<way> forced, const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                const verdict& earlier, const timing_options& options) {
  timed_verdict answer;
  answer.result = earlier;
  answer.result.binary = built.binary_hash;
  const auto refuse = [&](verdict_stage stage, std::string reason, std::vector<mismatch> mismatches = {}) {
    answer.result.stage = stage;
    answer.result.reason = std::move(reason);
    if (!mismatches.empty()) answer.result.mismatches = std::move(mismatches);
    if (built.kept) built.kept->runner.reset();
    return answer;
  };
  if (const auto why = why_unverifiable(audit); !why.empty()) return refuse(verdict_stage::audit, why);
  const auto blame = [&](const error& e, const std::string& when) -> expected<timed_verdict> {
    if (!is_candidates_fault(e)) return fail(e);
    return refuse(verdict_stage::run, e.message + when);
  };
  auto runner = running(built, ref, options);
  if (!runner) return is_candidates_fault(runner.error()) ? refuse(verdict_stage::load, runner.error().message) : expected<timed_verdict>(fail(runner.error()));
  const auto one_call = limit_of_call(ref, shortest_device_command);
  if (!one_call) return fail(one_call.error());
  const device_side side(*runner, ref, *one_call);

  const uint64_t seed = seed_source().next() | 1;
  slot_checker checker(t, ref, chosen_tolerance(t, ref, earlier, audit), audit.tightening);
  for (int slot = 0; slot < side.slots; ++slot) {
    if (auto made = ref.make_inputs(slot, seed_of_set(seed, static_cast<int>(input_kind::own), slot + 1), input_kind::own); !made) return fail(made.error());
    checker.refresh(slot, "unseen seed " + std::to_string(slot + 1));
  }
  device_audit audits(side, built.device, ref, checker, seed);
  if (auto sent = (*runner)->upload(0, side.slots, side.timeout); !sent) return blame(sent.error(), "");

  auto lease = lease_device(built.device);
  // A first look: right on what it never saw, and how long a call takes on either side.
  const auto start = steady::now();
  const auto looks = side.few(probe_calls);
  auto mine = side.events(looks, false);
  const double wall = since(start);
  if (!mine) return blame(mine.error(), " (while it was timed)");
  auto right = audits.results_are_right("before timing");
  if (!right) return blame(right.error(), " (before timing)");
  if (!right->empty()) return refuse(verdict_stage::compare, *right, audits.mismatches);
  auto theirs = ref.time(looks, false);
  if (!theirs) return fail(theirs.error());
  const double share = std::clamp(*mine / wall, least_share, 1.0);
  const auto calls = static_cast<double>(looks);
  auto how = choose_way(*mine / calls, *theirs / calls, [&] { return (*runner)->capture(0, side.slots, side.limit(3 * side.slots)); },
                        [&] { return ref.capture(); });
  if (how && forced) how = *forced;
  if (!how) return blame(how.error(), " (while its call was captured)");

  auto failure = std::make_shared<error>();
  double used = 0, baseline_wall = 0; // CPU time of the candidate and its children while the reference is timed
  const auto look = since(start);
  const auto compared = [&]() -> expected<timing> {
    device_clock clock(options, look);
    const auto reference_side = [&](int64_t n) {
      const double before = session_cpu_seconds((*runner)->pid());
      const auto begin = steady::now();
      auto seconds = reference_seconds(ref, n, *how);
      const double wall_seconds = since(begin);
      const double after = session_cpu_seconds((*runner)->pid());
      if (before >= 0 && after >= 0) {
        used += std::max(0.0, after - before); // less: a child is gone that nobody waited for
        baseline_wall += wall_seconds;
      }
      return seconds;
    };
    auto result = compare_times(side.timed(clock, "candidate", *how, failure), clock.side(ref.baseline_name(), reference_side),
                                clock.options(options, *how == way::our_clock ? 1.0 : share));
    (*runner)->thaw();
    return result;
  };
  expected<timing> time = compared();
  expected<bool> shared = device_is_shared(ref, built.device);
  for (int more = 1; time && shared && *shared && more < most_shared; ++more) { // somebody was at work for a moment
    time = compared();
    shared = device_is_shared(ref, built.device);
  }
  if (!time) {
    if (!failure->message.empty()) return blame(*failure, " (while it was timed)");
    return fail(time.error());
  }
  if (!shared) return fail(shared.error());
  time->cache = words(*how);
  answer.time = *time;
  if (const auto b = find_backend(built.device.backend); b && b->on_device())
    if (const auto state = device_state(*b, built.device.index); !state.empty()) answer.time.note = "device: " + state;
  if (lease.disturbed()) answer.time.note += (answer.time.note.empty() ? "" : "; ") + std::string("another PRAGMA process holds this device, and did not let go: both measure into each other");
  if (baseline_wall > 0 && used > 0.1 * baseline_wall)
    return refuse(verdict_stage::audit, "it used " + format_seconds(used) + " of CPU time in the " + format_seconds(baseline_wall) +
                                            " in which the reference was being timed: it slows the reference down");
  // What another process on the device could explain, too: when the candidate has ended, its own work has.
  const auto refuse_unless_shared = [&](const std::string& reason) -> expected<timed_verdict> {
    (*runner)->end();
    const auto still = device_is_shared(ref, built.device);
    if (!still) return fail(still.error());
    if (*still) return fail(device_is_shared_error());
    return refuse(verdict_stage::audit, reason);
  };
  if (*shared)
    return refuse_unless_shared("the device was busy while nothing was asked of the candidate, and is not since its process has ended: it works in the background");

  const double call_seconds = time->candidate_seconds;
  if (const auto doubted = unbelievable(call_seconds, options)) {
    refuse(doubted->stage, doubted->reason);
    answer.result.why_not = doubted->why_not;
    return answer;
  }
  if (lease.owns_lock()) lease.unlock(); // what follows asks for it as it needs it
  bool doubtful = false;
  for (const auto step : {0, 1, 2, 3}) {
    auto found = step == 0   ? audits.results_are_right("after timing")
                 : step == 1 ? audits.clock_agrees(call_seconds, *how, doubtful)
                 : step == 2 ? audits.unseen_is_as_fast(call_seconds, *how)
                             : audits.calls_as_before(earlier.torch_operators, call_seconds, *how);
    if (!found) return blame(found.error(), " (after timing)");
    if (!found->empty() && step == 1 && audits.mismatches.empty()) return refuse_unless_shared(*found);
    if (!found->empty()) return refuse(verdict_stage::audit, *found, audits.mismatches);
    if (doubtful) {
      if (built.kept) built.kept->by_our_clock = true; // in comparisons with others, too
      return time_by(way::our_clock, t, audit, ref, built, earlier, options);
    }
  }
  answer.result.checked.push_back("results of the timed calls, on unseen seeds");
  answer.result.checked.push_back(*how == way::our_clock ? "timed by our clock" : "our clock agrees with the device's events");
  answer.result.checked.push_back("unseen inputs take as long as seen ones");
  return answer;
}

} // namespace

expected<timed_verdict> time_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& options) {
  const bool decided = built.kept && built.kept->by_our_clock;
  return time_by(decided ? std::optional(way::our_clock) : std::nullopt, t, audit, ref, built, earlier, options);
}

namespace {

/// Two candidates, each in the process that it has: a device's memory is placed alike in every process. With the audits of time_by() that need no
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
    return refuse(verdict_stage::run, e.message);
  }
  side_by_side refuse(verdict_stage stage, const std::string& reason) {
    answer_.failed = at_ == 0 ? failed_side::challenger : failed_side::champion;
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
        if (at_ == 1 && runner.error().code != ec::interrupted) refuse(verdict_stage::load, runner.error().message);
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
      share_ = std::min(share_, std::clamp(*seconds / since(start), least_share, 1.0));
    }
    look_ = since(begin);
    const auto capture = [&](size_t i) {
      at_ = i;
      return sides_[i].runner->capture(0, sides_[i].slots, sides_[i].limit(3 * sides_[i].slots));
    };
    auto how = choose_way(call_seconds[0], call_seconds[1], [&] { return capture(0); }, [&] { return capture(1); });
    if (!how) return fail(how.error());
    how_ = *how;
    for (const auto* built : built_)
      if (built->kept && built->kept->by_our_clock) how_ = way::our_clock;
    return {};
  }

  expected<void> time() {
    const auto lease = lease_device(built_[0]->device);
    std::shared_ptr<error> failures[2] = {std::make_shared<error>(), std::make_shared<error>()};
    device_clock clock(options_, look_);
    auto time = compare_times(sides_[0].timed(clock, "challenger", how_, failures[0]), sides_[1].timed(clock, "best", how_, failures[1]),
                              clock.options(options_, how_ == way::our_clock ? 1.0 : share_));
    for (const auto& side : sides_) side.runner->thaw();
    for (at_ = 0; at_ < 2; ++at_)
      if (!failures[at_]->message.empty()) return fail(*failures[at_]);
    at_ = 0;
    if (!time) return fail(ec::measurement_failed, time.error().message, time.error().hint);
    answer_.time = std::move(*time);
    answer_.time.cache = words(how_);
    for (at_ = 0; at_ < 2; ++at_)
      if (const auto doubted = unbelievable(at_ == 0 ? answer_.time.candidate_seconds : answer_.time.baseline_seconds, options_)) {
        answer_.result.stage = doubted->stage;
        answer_.result.why_not = doubted->why_not;
        answer_.result.reason = doubted->reason;
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
      for (const int step : {0, 1}) {
        auto found = step == 0 ? audits.results_are_right("after timing beside another") : audits.clock_agrees(seconds[at_], how_, doubtful);
        if (!found) return fail(found.error());
        if (found->empty()) continue;
        refuse(verdict_stage::audit, *found);
        return fail(ec::candidate_failed, *found);
      }
      if (!doubtful) continue;
      if (built_[at_]->kept) built_[at_]->kept->by_our_clock = true;
      how_ = way::our_clock;
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
  way how_ = way::events;
  double share_ = 1, look_ = 0;
  side_by_side answer_;
};

} // namespace

expected<side_by_side> compare_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                         const build_output& champion, const timing_options& options) {
  return device_pair(t, audit, ref, challenger, champion, options).run();
}

} // namespace pragma
