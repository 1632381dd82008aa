// Interleaved timing of two sides (candidate against reference, or against another candidate), with the bootstrap
// interval of the ratio, and the audits that every such figure has passed. docs/measuring.md.
#pragma once

#include "diagnosis/profile.hpp"
#include "execution/runner_process.hpp"
#include "kernels/verdict.hpp"
#include "timing/comparison.hpp"
#include "verification/verify.hpp"

#include <chrono>
#include <functional>

namespace pragma {

/// One side of a comparison: runs `calls` calls and returns when they are done.
struct timed_side {
  std::string name;
  std::function<expected<void>(int64_t calls)> run;
  int pid = 0;                       ///< for /proc/PID/task/*/schedstat (run delay)
  int cycle = 1;                     ///< calls until it works on the same memory again
  bool flushed = false;              ///< each of its calls finds the same caches, whatever ran before it
  bool reference = false;            ///< Torch's own process: its threads may be more than those of a call
  std::function<double()> seconds;   ///< of the latest run, where the side itself knows where its work began and ended; empty: the clock around it
  std::function<double()> run_delay; ///< seconds so far; empty: read for `pid` (tests inject their own)
  std::function<expected<void>()> wake; ///< before a sample, outside of its time; may be empty
  std::function<void()> rest;           ///< after it: while the other side is timed, this one stands still; may be empty
};

struct timing_options {
  int threads = 1;
  double max_seconds = defaults::max_timing_seconds;
  int blocks = defaults::blocks;
  double sample_seconds = defaults::sample_seconds;
  int warmups = defaults::warmups;
  int repetitions = defaults::repetitions;
  uint64_t seed = 1;                 ///< of the bootstrap
  uint64_t input_seed = 0;           ///< of all input sets, as verify_options::seed; 0: from getrandom()
  bool keep_sets = false;            ///< as verify_options::keep_sets
  double tolerance = 0;               ///< as verify_options::tolerance
  size_t processes = 1;               ///< fresh ones, whose figures are put together (comparison.hpp); programs of the host only
  int waits = 1;                      ///< for a quiet machine, before a figure is taken under contention
  double first_wait = 1;              ///< seconds until a machine that was too busy is tried again; doubles
  std::function<std::string(double seconds)> beyond_limits; ///< the limit of this machine that a call of so many seconds would break, in words; else "". May measure the limits again: the candidates stand still while it is asked
  const std::atomic<bool>* cancel = nullptr;
  std::function<double()> clock;     ///< seconds; empty: the steady clock (tests inject their own)
  std::function<double()> others;    ///< share of the machine that others took since the comparison began; empty: others_watch by the steady clock, whatever `clock` is
  double most_others = 0;            ///< share of the machine that others may take; 0: most_others() of these threads
  std::function<double()> steal;     ///< seconds stolen so far; empty: /proc/stat, for the CPUs that we measure on
};

/// Alternates the sides in blocks (ABBA), drops contended pairs, returns medians and the 95% interval of baseline/candidate.
/// measurement_failed when too few pairs were accepted even after a retry.
expected<timing> compare_times(timed_side candidate_side, timed_side baseline_side, const timing_options& options);

/// Times a verified candidate against the reference in a fresh process, on inputs that it has not seen, with all audits (time_pair.hpp). The
/// verdict replaces the earlier one: wrong or cheating only with evidence that two processes gave, `not_established` where the machine
/// was too busy for any.
struct timed_verdict {
  timing time;
  verdict result;
};
expected<timed_verdict> time_candidate(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& options);

/// Whose crash, hang, refusal or trick ended a comparison of two candidates; nobody's where the reference, the machine or a cancel did.
enum class failed_side { none, challenger, champion };

struct side_by_side {
  timing time;
  failed_side failed = failed_side::none;
  verdict result;                    ///< of the side that failed; `not_established` with nobody's failure: the machine was too busy
};

/// Is `challenger` faster than `champion`? Both run in processes of their own, side by side, with the audits of time_candidate();
/// several times afresh, since where a process's memory happens to lie can decide over more than the interval of one
/// comparison says, and more often while the answer to `asked` is open and can still come (comparison.hpp).
expected<side_by_side> compare_candidates(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                          const build_output& champion, const timing_options& options, comparison_goal asked = comparison_goal::how_much);

/// Taken under contention, and its interval spans a factor of three or more: not a figure that anybody should be shown.
bool says_nothing(const timing& t);

/// 95% bootstrap interval of the ratio of medians over paired samples; deterministic for a seed.
interval bootstrap_ratio(const std::vector<double>& baseline, const std::vector<double>& candidate, uint64_t seed,
                         int resamples = defaults::bootstrap_resamples);

} // namespace pragma
