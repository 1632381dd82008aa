#include "timing/device_audit.hpp"

#include "base/seconds.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "execution/contention.hpp"

#include <algorithm>
#include <set>

#include <unistd.h>

namespace pragma {

namespace {

constexpr double most_wall = 20, wall_factor = 20, look_factor = 5; ///< of our clock, for a comparison: seconds, times what its own clock may show, times a first look
constexpr double outer_batch_seconds = 0.03; ///< calls back to back by our clock
constexpr int outer_rounds = 2, more_outer_rounds = 6; ///< more where our clock sees more: other work on the processor only adds time
constexpr int64_t most_outer_calls = 4000;
constexpr double outer_factor = 1.5;         ///< our clock over the events': kernels that run back to back also wait for each other's ends
constexpr double graph_slack = 10e-6;        ///< a replay on our clock, beside the kernels
constexpr double most_protocol = 300e-6;     ///< of an empty command: more is not subtracted, since a candidate could answer those slowly
constexpr double late_factor = 2, late_slack = 10e-3; ///< of fetching results after calls back to back, over fetching them again
constexpr int fresh_rounds = 3;              ///< more, up to repeated_look::most_rounds, while unseen contents are slower in most of them
constexpr double later_seconds = 0.2;        ///< on the device, of the calls from Python that follow on replays
constexpr int64_t warm_calls = 30;           ///< before a single timed call, so that the device's clocks are up
constexpr double fresh_factor = 1.5, fresh_slack = 20e-6;
constexpr double long_call = 300e-6;         ///< seconds: Python launches a module's kernels in less

using steady = std::chrono::steady_clock;

int64_t outer_calls(double call_seconds) {
  return std::clamp<int64_t>(static_cast<int64_t>(outer_batch_seconds / std::max(call_seconds, 1e-7)), 3, most_outer_calls);
}

} // namespace

const char* description(device_clock_kind how) {
  return how == device_clock_kind::graphs      ? "flushed; graphs replayed, the device's events"
         : how == device_clock_kind::our_clock ? "warm; calls back to back with their launches, our clock"
                                 : "flushed; the device's events";
}

device_clock::device_clock(const timing_options& given, double look) : most_(most_wall + wall_factor * given.max_seconds + look_factor * look) {}

timed_side device_clock::side(std::string name, pid_t process, std::function<expected<double>(int64_t)> seconds_of, std::shared_ptr<error> failure) {
  timed_side one;
  one.name = std::move(name);
  one.pid = process;
  one.flushed = true;
  one.run_delay = [] { return 0.0; };
  one.run = [now = now_, seconds_of = std::move(seconds_of), failure, start = start_, most = most_](int64_t calls) -> expected<void> {
    if (calls == 0) return {};
    if (seconds_since(start) > most)
      return fail(ec::measurement_failed, "no measurement within " + format_seconds(most) + ", of which " + format_seconds(*now) + " passed by the device's clock");
    auto seconds = seconds_of(calls);
    if (!seconds) {
      if (failure) *failure = seconds.error();
      return fail(seconds.error());
    }
    *now += *seconds;
    return {};
  };
  return one;
}

timing_options device_clock::options(timing_options given, double share) const {
  given.clock = [now = now_] { return *now; };
  given.steal = [] { return 0.0; };
  given.most_others = most_others_of_a_device();
  given.max_seconds *= share;
  given.sample_seconds *= std::max(share, 0.1);
  return given;
}

device_side::device_side(std::shared_ptr<runner_process> process, const reference& ref, const call_limit& limit_of_one)
    : runner(std::move(process)), slots(ref.slots()), one(limit_of_one), timeout(limit_of_one.seconds) {}

expected<double> device_side::outer(int64_t calls, bool graph) const {
  auto start = steady::now();
  if (auto empty = runner->run(0, slots, 0, graph, timeout); !empty) return fail(empty.error());
  const double protocol = std::min(seconds_since(start), most_protocol);
  start = steady::now();
  if (auto ran = runner->run(0, slots, calls, graph, limit(calls)); !ran) return fail(ran.error());
  return std::max(seconds_since(start) - protocol, 1e-9);
}

expected<double> device_side::downloading() const {
  const auto start = steady::now();
  if (auto got = runner->download(0, slots, limit(most_outer_calls)); !got) return fail(got.error());
  return seconds_since(start);
}

timed_side device_side::timed(device_clock& clock, const std::string& name, device_clock_kind how, std::shared_ptr<error> failure) const {
  auto side = clock.side(name, runner->pid(), [*this, how](int64_t n) { return seconds(n, how); }, failure);
  side.wake = [*this, failure]() -> expected<void> {
    runner->thaw();
    auto empty = runner->run(0, slots, 0, false, timeout);
    if (!empty) *failure = empty.error();
    return empty;
  };
  side.rest = [process = runner] { process->freeze(); };
  return side;
}

namespace {

/// What times alone show: another process has to show it as well, and where rounds disagree nothing is established.
finding_of_audit shown_by_time(bool shown, std::string seen, const std::string& trick) {
  finding_of_audit found;
  found.by_time = true;
  found.reason = std::move(seen) + (shown ? ": " + trick : ", not often enough to tell a trick from other work on this machine");
  if (!shown) {
    found.stage = verdict_stage::not_established;
    found.why_not = doubt::machine_busy;
  }
  return found;
}

} // namespace

device_audit::answer device_audit::results_are_right(const std::string& when) {
  auto wrong = wrong_results();
  if (!wrong) return fail(wrong.error());
  if (wrong->empty()) return std::nullopt;
  keep_worst(*wrong);
  finding_of_audit found;
  found.reason = sentence(wrong->front()) + " (" + when + ")";
  found.mismatches = std::move(*wrong);
  return found;
}

device_audit::answer device_audit::clock_agrees(double call_seconds, device_clock_kind how, bool& doubtful) {
  const auto calls = outer_calls(call_seconds);
  const auto lease = lease_device(device_);
  if (auto late = calls_are_over(calls, how); !late || *late) return late;
  if (how == device_clock_kind::our_clock) return std::nullopt;
  const double replay = outer_factor * call_seconds + graph_slack;
  double least = 1e300;
  for (int round = 0; round < outer_rounds || (round < more_outer_rounds && least > replay); ++round) {
    auto seconds = side_.outer(calls, how == device_clock_kind::graphs);
    if (!seconds) return fail(seconds.error());
    least = std::min(least, *seconds / static_cast<double>(calls));
  }
  auto right = results_are_right("after calls back to back");
  if (!right || *right || least <= replay) return right;
  auto launches = replays_in(replay, calls);
  if (!launches) return fail(launches.error());
  doubtful = !*launches;
  return std::nullopt;
}

device_audit::answer device_audit::calls_are_over(int64_t calls, device_clock_kind how) {
  repeated_look look(late_factor, late_slack), without_waiting = look;
  // A process that has just worked for long is the first to wait on a busy processor, in every round. What it and we waited for one accuses nobody; it
  // frees nobody either, since a candidate can make itself wait.
  const auto waited = [&] { return run_delay_seconds(side_.runner->pid()) + run_delay_seconds(getpid()); };
  while (look.rounds() < repeated_look::most_rounds && (look.rounds() < outer_rounds || !look.innocent())) {
    if (auto ran = side_.outer(calls, how == device_clock_kind::graphs); !ran) return fail(ran.error());
    const double before = waited();
    const auto late = side_.downloading();
    const double waiting = waited() - before;
    const auto again = side_.downloading();
    if (!late || !again) return fail(late ? again.error() : late.error());
    look.add(*late, *again);
    without_waiting.add(std::max(*late - waiting, 0.0), *again);
  }
  if (look.innocent()) return std::nullopt;
  return shown_by_time(look.shown() && without_waiting.shown(),
                       "fetching its results takes " + format_seconds(look.one()) + " after " + std::to_string(calls) + " calls and " + format_seconds(look.other()) +
                           " when they are fetched again",
                       "it says that calls are over before they are");
}

device_audit::answer device_audit::unseen_is_as_fast(double call_seconds, device_clock_kind how) {
  if (how == device_clock_kind::our_clock) how = device_clock_kind::events; // single calls: launches are hidden behind the flush
  const bool graph = how == device_clock_kind::graphs;
  auto& runner = *side_.runner;
  repeated_look look(fresh_factor, fresh_slack);
  // A thread of the candidate may see the inputs from the moment they are taken over. A flush would give it time to work; it is needed only where launches from
  // Python would else be longer than the call.
  const bool flush = !graph && call_seconds < long_call;
  const auto once = [&](int round, bool unseen) -> expected<double> {
    const auto calls = side_.few(warm_calls);
    {
      const auto lease = lease_device(device_);
      if (auto warm = runner.time(1 % side_.slots, 1, calls, graph, side_.limit(calls)); !warm) return fail(warm.error());
    }
    runner.freeze(); // nothing of it runs while they are made
    auto made = ref_.make_inputs(0, seed_of_set(seed_, static_cast<int>(input_kind::own), 1000 + round), input_kind::own);
    runner.thaw();
    if (!made) return fail(made.error());
    const auto lease = lease_device(device_);
    // Copied in either case: the launch after a copy that was waited for may be late (by 25 us on one H200).
    return runner.time_once(0, graph, unseen ? copied::taken_over : copied::elsewhere, flush, side_.timeout);
  };
  for (int round = 0; round < repeated_look::most_rounds && (round < fresh_rounds || !look.innocent()); ++round) {
    const auto unseen = once(round, true), again = unseen ? once(round, false) : unseen; // each after the same: calls, and as long a time without any
    if (!again) return fail(again.error());
    checker_.refresh(0, "unseen inputs " + std::to_string(round + 1));
    look.add(*unseen, std::max(*again, call_seconds));
  }
  if (auto right = results_are_right("unseen inputs at the same address"); !right || *right) return right;
  if (look.innocent()) return std::nullopt;
  return shown_by_time(look.shown(), "a call takes " + format_seconds(look.one()) + " on inputs that it never saw and " + format_seconds(look.other()) + " on the same ones again",
                       "it keeps answers");
}

device_audit::answer device_audit::alone_as_among_many(double call_seconds, device_clock_kind how) {
  const bool graph = how == device_clock_kind::graphs;
  const auto lease = lease_device(device_);
  repeated_look look(fresh_factor, fresh_slack);
  while (look.rounds() < repeated_look::most_rounds && (look.rounds() < fresh_rounds || !look.innocent())) {
    const auto calls = side_.few(warm_calls);
    if (auto warm = side_.runner->time(1 % side_.slots, 1, calls, graph, side_.limit(calls)); !warm) return fail(warm.error());
    const auto alone = side_.runner->time_once(0, graph, copied::nothing, how != device_clock_kind::our_clock, side_.timeout);
    if (!alone) return fail(alone.error());
    look.add(*alone, call_seconds);
  }
  if (look.innocent()) return std::nullopt;
  return shown_by_time(look.shown(), "a call takes " + format_seconds(look.one()) + " alone and " + format_seconds(call_seconds) + " among many",
                       "it leaves out calls");
}

device_audit::answer device_audit::calls_as_before(const std::vector<std::string>& before, double call_seconds, device_clock_kind how) {
  if (how == device_clock_kind::graphs) {
    const auto calls = side_.few(std::clamp<int64_t>(static_cast<int64_t>(later_seconds / std::max(call_seconds, 1e-7)), warm_calls, most_outer_calls));
    const auto lease = lease_device(device_);
    if (auto ran = side_.runner->run(0, side_.slots, calls, false, side_.limit(calls)); !ran) return fail(ran.error());
    // A runner calls one model in all calls of a command: another that was put into it meanwhile gets its first calls here, and keeps what it keeps.
    if (auto again = side_.runner->call(0, side_.slots, side_.slots, side_.limit(side_.slots)); !again) return fail(again.error());
  }
  if (auto made = ref_.make_inputs(0, seed_of_set(seed_, static_cast<int>(input_kind::own), 2000), input_kind::own); !made) return fail(made.error());
  checker_.refresh(0, "unseen inputs of a later call");
  const auto name_of = [](const std::string& counted) { return counted.substr(0, counted.rfind(':')); };
  std::set<std::string> known;
  for (const auto& one : before) known.insert(name_of(one));
  if (auto called = side_.runner->call(0, side_.slots, side_.slots, side_.limit(side_.slots)); !called) return fail(called.error());
  if (auto right = results_are_right("called again"); !right || *right) return right;
  std::vector<std::string> more;
  for (const auto& one : side_.runner->torch_operators())
    if (!known.count(name_of(one))) more.push_back(one);
  if (more.empty()) return std::nullopt;
  finding_of_audit found;
  found.reason = "after it was timed it left " + join(more, ", ") + " to Torch, and not while it was verified";
  return found;
}

expected<std::vector<mismatch>> device_audit::wrong_results() {
  auto& runner = *side_.runner;
  std::vector<mismatch> wrong;
  fill_outputs(ref_.outputs_layout(), runner.outputs(), 0, side_.slots);
  const auto before = probe_fill(ref_.outputs_layout(), runner.outputs());
  if (auto got = runner.download(0, side_.slots, side_.timeout); !got) return fail(got.error());
  for (int slot = 0; slot < side_.slots; ++slot) {
    auto outcome = checker_.check(slot, runner.outputs(), before);
    for (auto& m : outcome.mismatches) wrong.push_back(std::move(m));
  }
  return wrong;
}

expected<bool> device_audit::replays_in(double seconds, int64_t calls) {
  auto captured = side_.runner->capture(0, side_.slots, side_.timeout * 3);
  if (!captured) return fail(captured.error());
  double least = 1e300;
  for (int round = 0; *captured && round < more_outer_rounds && least > seconds; ++round) {
    auto batch = side_.outer(calls, true);
    if (!batch) return fail(batch.error());
    least = std::min(least, *batch / static_cast<double>(calls));
  }
  if (!*captured || least > seconds) return false;
  auto wrong = wrong_results();
  if (!wrong) return fail(wrong.error());
  return wrong->empty();
}

} // namespace pragma
