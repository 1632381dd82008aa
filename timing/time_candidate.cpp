// How often a pair is timed until something can be said: two looks have to agree before anybody is accused for a time, a busy machine is
// waited for, and a comparison that decides nothing is made again.
#include "base/language.hpp"
#include "base/seconds.hpp"
#include "base/text.hpp"
#include "timing/device_timing.hpp"
#include "timing/time_pair.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace pragma {

namespace {

constexpr int most_looks = 4;               ///< at one candidate: two that agree accuse it, and as many may be spoilt
constexpr double comparison_budget = 4;     ///< times max_seconds: no further process is started after it
constexpr double figure_budget = 2;         ///< ... for a figure of several processes: where inputs take long to make, one has to do
constexpr double widest_of_a_figure = 3;    ///< high / low of an interval that was taken under contention: a wider one is no figure

using clock = std::chrono::steady_clock;

bool cancelled(const timing_options& options) { return options.cancel && options.cancel->load(); }

void wait_for_quiet(int times, const timing_options& options) {
  const auto start = clock::now();
  while (seconds_since(start) < options.first_wait * (1 << times) && !cancelled(options)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void settle(verdict& v, const timed_pair& pair) {
  v.stage = pair.found->stage;
  v.why_not = pair.found->why_not;
  v.reason = pair.found->reason;
  if (!pair.found->mismatches.empty()) v.mismatches = pair.found->mismatches;
  if (!pair.log.empty()) v.log = pair.log;
}

/// What one process showed by times alone is believed when a second one shows it.
class accusations {
public:
  /// True when this ends the matter.
  bool stands(const timed_pair& pair) {
    if (!pair.found) return false;
    if (pair.found->stage == verdict_stage::not_established) return false;
    if (!pair.found->by_time) return true;
    return ++shown_[pair.side] >= 2;
  }

private:
  int shown_[2] = {0, 0};
};

/// Says that nothing was established, in the words of the last look.
void give_up(verdict& v, const timed_pair& last) {
  settle(v, last);
  v.stage = verdict_stage::not_established;
  if (v.why_not == doubt::none) v.why_not = doubt::machine_busy;
  v.reason = "not established after " + std::to_string(most_looks) + " looks: " + v.reason;
}

} // namespace

bool says_nothing(const timing& t) { return t.contended && t.speedup.high > widest_of_a_figure * t.speedup.low; }

namespace {

/// The tolerance that the user chose for the verification; 0 when it was the task's or the default.
double chosen_tolerance(const task& t, reference& ref, const verdict& earlier, const task_audit& audit) {
  const slot_checker usual(t, ref, 0, audit.tightening);
  for (size_t i = 0; i < t.outputs.size(); ++i)
    if (is_floating(t.outputs[i].dtype)) return earlier.tolerance > 0 && earlier.tolerance != usual.tolerance(i) ? earlier.tolerance / audit.tightening_of(i) : 0;
  return 0;
}

/// Pairs that were timed in fresh processes, and what ended that before there were enough.
struct timed_afresh {
  std::vector<timing> times;
  std::optional<timed_pair> ended_by;
  bool stands = false; ///< it accuses; else other work spoilt too many
};

expected<timed_afresh> time_afresh(std::vector<timing> times, accusations accused, const std::function<expected<timed_pair>()>& once,
                                   const std::function<bool(const std::vector<timing>&)>& another) {
  timed_afresh all{std::move(times), {}, false};
  int spoilt = 0;
  while (another(all.times)) {
    auto pair = once();
    if (!pair) return fail(pair.error());
    all.stands = accused.stands(*pair);
    if (!pair->found) all.times.push_back(std::move(pair->time));
    else if (all.stands || ++spoilt > most_looks) {
      all.ended_by = std::move(*pair);
      break;
    }
  }
  return all;
}

/// For one of several processes. Not fewer samples: they cost a tenth of what a process and its audits do.
timing_options share_of(const timing_options& options) {
  auto share = options;
  share.max_seconds /= fresh_processes;
  share.repetitions /= static_cast<int>(fresh_processes);
  return share;
}

} // namespace

expected<timed_verdict> time_candidate(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& given) {
  timed_verdict answer;
  answer.result = earlier;
  answer.result.binary = built.binary_hash;
  auto options = given;
  options.tolerance = chosen_tolerance(t, ref, earlier, audit);
  accusations accused;
  timed_pair last;
  int busy = 0;
  const auto start = clock::now();
  for (int look = 0; look < most_looks; ++look) {
    auto pair = in_python(built.language) ? time_pair_on_device(t, audit, ref, built, earlier.torch_operators, options)
                                          : time_pair(t, audit, ref, {&built, "candidate"}, {}, options);
    if (!pair) return fail(pair.error());
    const bool limit_of_ours = pair->found && pair->found->why_not == doubt::our_limit; // no quieter moment mends it
    if (accused.stands(*pair) || limit_of_ours) {
      answer.time = pair->time;
      settle(answer.result, *pair);
      return answer;
    }
    last = std::move(*pair);
    const bool contended = !last.found && last.time.contended;
    if (contended) answer.time = last.time;
    if (!last.found && (!contended || busy >= options.waits)) break;
    if (last.found && last.found->by_time && last.found->stage == verdict_stage::audit) continue; // at once, in another process
    if (look + 1 == most_looks) break;
    wait_for_quiet(busy++, options);
    if (cancelled(options)) return fail(ec::interrupted, "the measurement was interrupted");
  }
  if (last.found) {
    give_up(answer.result, last);
    return answer;
  }
  answer.time = last.time;
  if (options.processes > 1 && !in_python(built.language)) {
    const auto share = share_of(options);
    auto more = time_afresh({last.time}, accused, [&] { return time_pair(t, audit, ref, {&built, "candidate"}, {}, share); },
                            [&](const std::vector<timing>& times) { return times.size() < options.processes && seconds_since(start) < figure_budget * options.max_seconds; });
    if (!more) return fail(more.error());
    const auto count = more->times.size();
    answer.time = together(std::move(more->times));
    note_processes(answer.time, count);
    if (more->stands) {
      settle(answer.result, *more->ended_by);
      return answer;
    }
  }
  if (says_nothing(answer.time)) {
    answer.result.stage = verdict_stage::not_established;
    answer.result.why_not = doubt::machine_busy;
    answer.result.reason = "other work kept the machine busy: a speed-up between " + format_number(answer.time.speedup.low, 2) + " and " + format_number(answer.time.speedup.high, 2) + " says nothing. Try again when it is quiet";
    return answer;
  }
  answer.result.checked.insert(answer.result.checked.end(), last.checked.begin(), last.checked.end());
  return answer;
}

namespace {

/// The second over the first.
timed_pair turned(timed_pair pair) {
  auto& t = pair.time;
  pair.side = 1 - pair.side;
  std::swap(t.candidate_seconds, t.baseline_seconds);
  if (t.speedup.value > 0) t.speedup = {1 / t.speedup.value, 1 / t.speedup.high, 1 / t.speedup.low};
  return pair;
}

/// Who is first alternates from process to process: of two equal kernels the first one was 1 to 3% slower (docs/measuring.md).
class in_turns {
public:
  expected<timed_pair> operator()(const task& t, const task_audit& audit, reference& ref, const contender& challenger, const contender& best, const timing_options& options) {
    if (!(second_first_ = !second_first_)) return time_pair(t, audit, ref, challenger, best, options);
    auto pair = time_pair(t, audit, ref, best, challenger, options);
    if (!pair) return pair;
    pair = turned(std::move(*pair));
    pair->time.baseline = best.name;
    return pair;
  }

private:
  bool second_first_ = true;
};

} // namespace

expected<side_by_side> compare_candidates(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                          const build_output& champion, const timing_options& options, comparison_goal asked) {
  if (in_python(challenger.language)) return compare_on_device(t, audit, ref, challenger, champion, options);
  const auto share = share_of(options);
  const auto start = clock::now();
  in_turns timed;
  const auto all = time_afresh({}, {}, [&] { return timed(t, audit, ref, {&challenger, "challenger"}, {&champion, "best"}, share); }, [&](const std::vector<timing>& times) {
    return times.size() < fresh_processes || (worth_another(times, asked) && seconds_since(start) < comparison_budget * options.max_seconds);
  });
  if (!all) return fail(all.error());
  side_by_side answer;
  if (!all->times.empty()) answer.time = together(all->times);
  if (all->ended_by) {
    if (!all->stands) give_up(answer.result, *all->ended_by);
    else settle(answer.result, *all->ended_by);
    if (all->stands) answer.failed = all->ended_by->side == 0 ? failed_side::challenger : failed_side::champion;
    return answer;
  }
  if (!decided(answer.time.speedup))
    answer.time.note += (answer.time.note.empty() ? "" : "; ") + std::string(worth_another(all->times, asked) ? "still open after " : "no difference established by ") + std::to_string(all->times.size()) + " comparisons in fresh processes";
  answer.result.stage = verdict_stage::passed;
  return answer;
}

} // namespace pragma
