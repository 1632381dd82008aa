#include "kernels/device_timing.hpp"

#include "base/text.hpp"
#include "kernels/call_limit.hpp"
#include "kernels/contention.hpp"
#include "kernels/device_lease.hpp"
#include "kernels/seeds.hpp"
#include "kernels/slot_checker.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

namespace pragma {

namespace {

constexpr double shortest_timeout = 20;      ///< seconds, of one command
constexpr double most_wall = 20, wall_factor = 20, look_factor = 5; ///< of our clock, for a comparison: seconds, times what its own clock may show, times a first look
constexpr double graphs_below = 2e-3;        ///< launches from Python, on either side, are no time of a call: graphs where they can be had
constexpr double short_call = 50e-6;         ///< below it a launch counts for as much as the call: our own clock where there are no graphs
constexpr int64_t probe_calls = 40;          ///< to find out how long a call takes
constexpr double least_share = 0.02;         ///< of the wall-clock time that a device's clock may advance in
constexpr double outer_batch_seconds = 0.03; ///< calls back to back by our clock
constexpr int most_shared = 2;               ///< comparisons, where somebody else was at work during the first
constexpr int outer_rounds = 2, more_outer_rounds = 6; ///< more where our clock sees more: other work on the processor only adds time
constexpr int64_t most_outer_calls = 4000;
constexpr double outer_factor = 1.5;         ///< our clock over the events': kernels that run back to back also wait for each other's ends
constexpr double graph_slack = 10e-6;        ///< a replay on our clock, beside the kernels
constexpr double launch_slack = 200e-6;      ///< launches from Python on our clock, of a call that is no short one: beyond it is no honest one
constexpr double most_protocol = 300e-6;     ///< of an empty command: more is not subtracted, since a candidate could answer those slowly
constexpr double late_factor = 2, late_slack = 10e-3; ///< of fetching results after calls back to back, over fetching them again
constexpr int fresh_rounds = 3;
constexpr double later_seconds = 0.2;        ///< on the device, of the calls from Python that follow on replays
constexpr int64_t warm_calls = 30;           ///< before a single timed call, so that the device's clocks are up
constexpr double fresh_factor = 1.5, fresh_slack = 20e-6;

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

/// How both sides of one comparison are timed.
enum class way { events, graphs, our_clock };

const char* words(way how) {
  return how == way::graphs      ? "flushed; graphs replayed, the device's events"
         : how == way::our_clock ? "warm; calls back to back with their launches, our clock"
                                 : "flushed; the device's events";
}

/// compare_times() on the clock of a device: it advances by what the timed calls took there, and not by flushes and launches. A process
/// whose clock stands still could go on for ever, so that ours has a limit, too.
class device_clock {
public:
  /// `look`: seconds by our clock that a first look at both sides took.
  device_clock(const timing_options& given, double look) : most_(most_wall + wall_factor * given.max_seconds + look_factor * look) {}

  timed_side side(std::string name, std::function<expected<double>(int64_t)> seconds_of, std::shared_ptr<error> failure = nullptr) {
    timed_side one;
    one.name = std::move(name);
    one.run_delay = [] { return 0.0; };
    one.run = [now = now_, seconds_of = std::move(seconds_of), failure, start = start_, most = most_](int64_t calls) -> expected<void> {
      if (calls == 0) return {};
      if (since(start) > most)
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
  /// `share`: of the wall-clock time that the device's clock advances in.
  timing_options options(timing_options given, double share) const {
    given.clock = [now = now_] { return *now; };
    given.steal = [] { return 0.0; };
    given.max_seconds *= share;
    given.sample_seconds *= std::max(share, 0.1);
    return given;
  }

private:
  std::shared_ptr<double> now_ = std::make_shared<double>(0);
  steady::time_point start_ = steady::now();
  double most_;
};

/// One running candidate as seen from here.
struct device_side {
  std::shared_ptr<runner_process> runner;
  int slots = 1;
  call_limit one;
  double timeout = shortest_timeout; ///< of one call

  device_side(std::shared_ptr<runner_process> process, const reference& ref, const call_limit& limit_of_one)
      : runner(std::move(process)), slots(ref.slots()), one(limit_of_one), timeout(limit_of_one.seconds) {}
  int64_t few(int64_t wanted) const { return one.few(wanted, slots); }
  double limit(int64_t calls) const { return one.of(calls, few(probe_calls)); }
  expected<double> events(int64_t calls, bool graph) const { return runner->time(0, slots, calls, graph, limit(calls)); }
  /// Seconds of `calls` calls back to back by our clock, without what an empty command costs.
  expected<double> outer(int64_t calls, bool graph) const {
    auto start = steady::now();
    if (auto empty = runner->run(0, slots, 0, graph, timeout); !empty) return fail(empty.error());
    const double protocol = std::min(since(start), most_protocol);
    start = steady::now();
    if (auto ran = runner->run(0, slots, calls, graph, limit(calls)); !ran) return fail(ran.error());
    return std::max(since(start) - protocol, 1e-9);
  }
  /// Seconds of fetching the results of all slots.
  expected<double> downloading() const {
    const auto start = steady::now();
    if (auto got = runner->download(0, slots, limit(most_outer_calls)); !got) return fail(got.error());
    return since(start);
  }
  expected<double> seconds(int64_t calls, way how) const { return how == way::our_clock ? outer(calls, false) : events(calls, how == way::graphs); }
};

expected<double> reference_seconds(reference& ref, int64_t calls, way how) {
  if (how != way::our_clock) return ref.time(calls, how == way::graphs);
  const auto start = steady::now();
  if (auto ran = ref.run(calls); !ran) return fail(ran.error());
  return since(start);
}

double most_by_our_clock(double call_seconds, way how) { return outer_factor * call_seconds + (how == way::graphs ? graph_slack : launch_slack); }

int64_t outer_calls(double call_seconds) {
  return std::clamp<int64_t>(static_cast<int64_t>(outer_batch_seconds / std::max(call_seconds, 1e-7)), 3, most_outer_calls);
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

/// The candidate's audits while it is timed. Each gives a reason when it cheated.
class device_audit {
public:
  device_audit(const device_side& side, const device_choice& device, reference& ref, slot_checker& checker, uint64_t seed)
      : side_(side), device_(device), ref_(ref), checker_(checker), seed_(seed) {}

  std::vector<mismatch> mismatches;
  using answer = expected<std::string>; ///< empty: honest

  /// What the latest calls left on the device is right.
  answer results_are_right(const std::string& when) {
    auto wrong = wrong_results();
    if (!wrong) return fail(wrong.error());
    mismatches.insert(mismatches.end(), std::make_move_iterator(wrong->begin()), std::make_move_iterator(wrong->end()));
    if (mismatches.empty()) return std::string();
    keep_worst(mismatches);
    return sentence(mismatches.front()) + " (" + when + ")";
  }

  /// Our clock sees no more than the events say, and calls are over when the process says so. `doubtful`: it sees more, which launching from Python
  /// could be, and work that the events do not see as well.
  answer clock_agrees(double call_seconds, way how, bool& doubtful) {
    const auto calls = outer_calls(call_seconds);
    double least = 1e300, late = 1e300, usual = 1e300;
    const auto lease = lease_device(device_);
    const double replay = most_by_our_clock(call_seconds, way::graphs);
    for (int round = 0; round < outer_rounds || (round < more_outer_rounds && how != way::our_clock && least > replay); ++round) {
      auto seconds = side_.outer(calls, how == way::graphs);
      if (!seconds) return fail(seconds.error());
      least = std::min(least, *seconds / static_cast<double>(calls));
      for (double* one : {&late, &usual}) {
        auto fetched = side_.downloading();
        if (!fetched) return fail(fetched.error());
        *one = std::min(*one, *fetched);
      }
    }
    if (late > late_factor * usual + late_slack)
      return "fetching its results takes " + format_seconds(late) + " after " + std::to_string(calls) + " calls and " + format_seconds(usual) +
             " when they are fetched again: it says that calls are over before they are";
    if (how == way::our_clock) return std::string();
    if (least <= most_by_our_clock(call_seconds, how)) {
      auto right = results_are_right("after calls back to back");
      if (!right || !right->empty() || least <= replay) return right;
      auto launches = replays_in(replay, calls);
      if (!launches) return fail(launches.error());
      doubtful = !*launches;
      return right;
    }
    return "its calls take " + format_seconds(least) + " back to back by our clock, and " + format_seconds(call_seconds) +
           " by the events in its process: work goes on outside of what they see";
  }

  /// Contents that it never saw take as long as those that it did.
  answer unseen_is_as_fast(double call_seconds, way how) {
    if (how == way::our_clock) how = way::events; // single calls: launches are hidden behind the flush
    const bool graph = how == way::graphs;
    auto& runner = *side_.runner;
    double fresh = 1e300, seen = 1e300;
    for (int round = 0; round < fresh_rounds; ++round) {
      if (auto made = ref_.make_inputs(0, seed_of_set(seed_, static_cast<int>(input_kind::own), 1000 + round), input_kind::own); !made) return fail(made.error());
      checker_.refresh(0, "unseen inputs " + std::to_string(round + 1));
      const auto lease = lease_device(device_);
      if (auto sent = runner.upload(0, 1, side_.timeout); !sent) return fail(sent.error());
      for (double* least : {&fresh, &seen}) { // each after the same calls: the first replay of a graph after another's takes longer
        const auto calls = side_.few(warm_calls);
        if (auto warm = runner.time(1 % side_.slots, 1, calls, graph, side_.limit(calls)); !warm) return fail(warm.error());
        auto once = runner.time(0, 1, 1, graph, side_.timeout);
        if (!once) return fail(once.error());
        *least = std::min(*least, *once);
      }
    }
    if (auto right = results_are_right("unseen inputs at the same address"); !right || !right->empty()) return right;
    if (fresh <= fresh_factor * std::max(seen, call_seconds) + fresh_slack) return std::string();
    return "a call takes " + format_seconds(fresh) + " on inputs that it never saw and " + format_seconds(seen) + " on the same ones again: it keeps answers";
  }

  /// Calls from Python are after timing what they were while it was verified: right on contents that it never saw, and what it leaves to Torch is
  /// what it left to it then. Replays of a graph call nothing of a module, so that as many calls are made first: users call the module.
  answer calls_as_before(const std::vector<std::string>& before, double call_seconds, way how) {
    if (how == way::graphs) {
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
    if (auto right = results_are_right("called again"); !right || !right->empty()) return right;
    std::vector<std::string> more;
    for (const auto& one : side_.runner->torch_operators())
      if (!known.count(name_of(one))) more.push_back(one);
    if (more.empty()) return std::string();
    return "after it was timed it left " + join(more, ", ") + " to Torch, and not while it was verified";
  }

private:
  expected<std::vector<mismatch>> wrong_results() {
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

  /// A graph holds the work of a call and none of its launches from Python: whether one does all of it in so many seconds.
  expected<bool> replays_in(double seconds, int64_t calls) {
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

  const device_side& side_;
  const device_choice& device_;
  reference& ref_;
  slot_checker& checker_;
  uint64_t seed_;
};

} // namespace

expected<void> keep_running(const build_output& built, const reference& ref, const timing_options& options) {
  if (!built.kept) return {};
  if (auto runner = running(built, ref, options); !runner) return fail(runner.error());
  return {};
}

expected<timed_verdict> time_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& built,
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
  const auto one_call = limit_of_call(ref, shortest_timeout);
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
  if (how && built.kept && built.kept->by_our_clock) how = way::our_clock;
  if (!how) return blame(how.error(), " (while its call was captured)");

  auto failure = std::make_shared<error>();
  double used = 0, baseline_wall = 0; // CPU time of the candidate and its children while the reference is timed
  const auto look = since(start);
  const auto compared = [&]() -> expected<timing> {
    device_clock clock(options, look);
    return compare_times(clock.side("candidate", [&](int64_t n) { return side.seconds(n, *how); }, failure),
                         clock.side(ref.baseline_name(),
                                    [&](int64_t n) {
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
                                    }),
                         clock.options(options, *how == way::our_clock ? 1.0 : share));
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
    if (doubtful && built.kept) { // nobody is accused, and only what our clock sees counts
      built.kept->by_our_clock = true;
      return time_on_device(t, audit, ref, built, earlier, options);
    }
  }
  answer.result.checked.push_back("results of the timed calls, on unseen seeds");
  answer.result.checked.push_back(*how == way::our_clock ? "timed by our clock" : "our clock agrees with the device's events");
  answer.result.checked.push_back("unseen inputs take as long as seen ones");
  return answer;
}

expected<timing> compare_on_device(reference& ref, const build_output& challenger, const build_output& champion, const timing_options& options,
                                   failed_side* failed) {
  const auto one_call = limit_of_call(ref, shortest_timeout);
  if (!one_call) return fail(one_call.error());
  const auto blame = [&](size_t side, const error& e) {
    if (failed && is_candidates_fault(e)) *failed = side == 0 ? failed_side::challenger : failed_side::champion;
    return fail(e);
  };
  std::vector<device_side> sides;
  for (const auto* built : {&challenger, &champion}) {
    auto runner = running(*built, ref, options);
    if (!runner) {
      // The challenger has been timed: where the best finds no place beside it, that ends the comparison and not the run.
      if (failed && built == &champion && runner.error().code != ec::interrupted) *failed = failed_side::champion;
      return blame(sides.size(), runner.error());
    }
    sides.emplace_back(*runner, ref, *one_call);
  }
  const auto lease = lease_device(challenger.device);
  double call_seconds[2] = {0, 0}, share = 1;
  const auto begin = steady::now();
  for (size_t i = 0; i < sides.size(); ++i) {
    const auto& side = sides[i];
    if (auto sent = side.runner->upload(0, side.slots, side.timeout); !sent) return blame(i, sent.error());
    const auto looks = side.few(probe_calls);
    const auto start = steady::now();
    auto seconds = side.events(looks, false);
    if (!seconds) return blame(i, seconds.error());
    call_seconds[i] = *seconds / static_cast<double>(looks);
    share = std::min(share, std::clamp(*seconds / since(start), least_share, 1.0));
  }
  const double look = since(begin);
  size_t captured = 0; // of which side it is asked
  const auto capture = [&](size_t i) {
    captured = i;
    return sides[i].runner->capture(0, sides[i].slots, sides[i].limit(3 * sides[i].slots));
  };
  auto how = choose_way(call_seconds[0], call_seconds[1], [&] { return capture(0); }, [&] { return capture(1); });
  if (!how) return blame(captured, how.error());
  for (const auto* built : {&challenger, &champion})
    if (built->kept && built->kept->by_our_clock) how = way::our_clock;
  std::shared_ptr<error> failures[2] = {std::make_shared<error>(), std::make_shared<error>()};
  for (int comparison = 0; comparison < most_shared; ++comparison) {
    device_clock clock(options, look);
    auto time = compare_times(clock.side("challenger", [&](int64_t n) { return sides[0].seconds(n, *how); }, failures[0]),
                              clock.side("best", [&](int64_t n) { return sides[1].seconds(n, *how); }, failures[1]),
                              clock.options(options, *how == way::our_clock ? 1.0 : share));
    for (size_t i = 0; i < 2; ++i)
      if (!failures[i]->message.empty()) return blame(i, *failures[i]);
    if (!time) return time;
    const auto shared = device_is_shared(ref, challenger.device);
    if (!shared) return fail(shared.error());
    time->cache = words(*how);
    if (!*shared) return time;
  }
  return fail(device_is_shared_error());
}

} // namespace pragma
