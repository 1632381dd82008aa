// Interleaved timing of two sides (candidate against reference, or against another candidate), with the bootstrap
// interval of the ratio and the audits that catch candidates whose speed is not real. docs/measuring.md.
#pragma once

#include "diagnosis/profile.hpp"
#include "kernels/runner_process.hpp"
#include "kernels/verdict.hpp"
#include "kernels/verify.hpp"

#include <functional>

namespace pragma {

/// One side of a comparison: runs `calls` calls and returns when they are done.
struct timed_side {
  std::string name;
  std::function<expected<void>(int64_t calls)> run;
  int pid = 0;                       ///< for /proc/PID/task/*/schedstat (run delay)
  std::function<double()> run_delay; ///< seconds so far; empty: read for `pid` (tests inject their own)
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
  const std::atomic<bool>* cancel = nullptr;
  std::function<double()> clock;     ///< seconds; empty: the steady clock (tests inject their own)
  std::function<double()> steal;     ///< seconds stolen so far; empty: /proc/stat, for the CPUs that we measure on
};

/// Alternates the sides in blocks (ABBA), drops contended pairs, returns medians and the 95% interval of baseline/candidate.
/// measurement_failed when too few pairs were accepted even after a retry.
expected<timing> compare_times(timed_side candidate_side, timed_side baseline_side, const timing_options& options);

/// The reference as a side, a running candidate as a side.
timed_side side_of(reference& ref);
timed_side side_of(runner_process& runner, int slots, std::string name, double timeout_seconds);

/// Times a verified candidate against the reference in a fresh process, then audits it: verified again after timing on
/// the very outputs of the timed calls; unseen content as fast as seen content; batches as slow as single calls.
/// The verdict replaces the earlier one (stage `audit` when it cheated).
struct timed_verdict {
  timing time;
  verdict result;
};
expected<timed_verdict> time_candidate(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& options);

/// Whose crash, hang or refusal ended a comparison of two candidates; nobody's where the reference, the machine or a cancel did.
enum class failed_side { none, challenger, champion };

/// Is `challenger` faster than `champion`? Both run in processes of their own, side by side, on the reference's inputs;
/// several times afresh, since where a process's memory happens to lie can decide over more than the interval of one
/// comparison says. The answer is the median process's, with an interval that holds all of them.
expected<timing> compare_candidates(reference& ref, const build_output& challenger, const build_output& champion,
                                    const timing_options& options, failed_side* failed = nullptr);

/// 95% bootstrap interval of the ratio of medians over paired samples; deterministic for a seed.
interval bootstrap_ratio(const std::vector<double>& baseline, const std::vector<double>& candidate, uint64_t seed,
                         int resamples = defaults::bootstrap_resamples);

/// CPUs to measure on (`threads` of the ones we may run on, the last ones) and one to keep for ourselves where there is one.
std::vector<int> measuring_cpus(int threads);

} // namespace pragma
