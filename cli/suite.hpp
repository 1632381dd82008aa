// Figures over a suite of tasks: per category (Fig. 3 of the paper) and overall (its Table I). Pure functions.
#pragma once

#include "actors/messages.hpp"

#include <filesystem>
#include <optional>

namespace pragma::cli {

struct task_outcome {
  std::string name, path, task_hash, category, status; ///< status: "ok", "left as it is", "failed", "unsupported", "invalid", "not established", "interrupted"
  std::string reason;                                   ///< why not "ok"
  interval speedup;                                     ///< confirmed, against Torch; only with "ok"
  double baseline_seconds = 0, candidate_seconds = 0;
  bool contended = false;
  bool dispatch_bound = false;                          ///< timing::mostly_dispatch()
  bool as_called = false;                               ///< the figure is the drop-in's, as a Torch program calls it; else the kernel's alone
  std::string not_called;                               ///< ... and why
  bool keeps_torch = false;                             ///< "ok", and its folder has no drop-in, as Model itself is as fast (why_no_drop_in())
  int attempts = 0;
  double roofline_share = 0;                            ///< percent; 0 = not known
  double wall_seconds = 0;
  std::string run;                                      ///< run id
};
PRAGMA_JSON(task_outcome, name, path, task_hash, category, status, reason, speedup, baseline_seconds, candidate_seconds, contended, dispatch_bound, as_called, not_called,
            keeps_torch, attempts, roofline_share, wall_seconds, run)

/// What a run_whole() left of the task at `path`; its category only where there is a run. What an error is called follows from its exit code: 6 is "not established".
task_outcome outcome_of(const std::filesystem::path& path, const expected<run_result>& run);
/// Of a suite's document in `file`. One of before it was written what a figure is of: the task's own run.json beside it says so, where it is there.
expected<task_outcome> outcome_from(const json& value, const std::filesystem::path& file);
/// How many times as fast as Model a program is that uses what was found: the drop-in's figure as called, 1 where Torch's model stays ("left as it is", keeps_torch).
/// Nothing: no right answer was found, or only the kernel's own time is known.
std::optional<double> as_used(const task_outcome& t);
/// Nothing is known of it yet: a suite that goes on tries it again, a comparison says nothing of it.
bool unsettled(const task_outcome& t);

struct suite_figures {
  std::string category;                                 ///< or "all"
  int n = 0, success = 0;                               ///< n counts every task that was tried to its end, also those that failed or are unsupported
  bool as_called = false;                               ///< what the means and fast_p are of: drop-ins as they are called where the suite has any, else kernels alone
  int kept = 0;                                         ///< of a suite as called: tasks of which Torch's model stays, 1.0 in the means. One with a right kernel is a success as well
  int kernel_alone = 0;                                 ///< successes of a suite as called that have the kernel's figure only: neither in the means nor in fast_p
  int dispatch_bound = 0;                               ///< successes of kernels alone whose Torch call is mostly dispatch: not in the means
  double arithmetic_mean = 0, geometric_mean = 0;       ///< of the other successes and, as called, of as_used(); 0 when there are none
  double fast_1 = 0;                                    ///< share of all n that are right and faster than Torch
  double fast_1_5 = 0, fast_2 = 0;
  double limit_before = 0, limit_after = 0;             ///< percent of the measured roofline that Torch and the kernel reach, geometric means; 0 = not known
};
PRAGMA_JSON(suite_figures, category, n, success, as_called, kept, kernel_alone, dispatch_bound, arithmetic_mean, geometric_mean, fast_1, fast_1_5, fast_2, limit_before, limit_after)

suite_figures figures_of(const std::string& category, const std::vector<task_outcome>& tasks);
/// One task in two suites: how many times as fast as before. Both were timed against Torch, apart from each other; the interval holds both of theirs.
struct task_change {
  std::string name;
  interval ratio;
};
PRAGMA_JSON(task_change, name, ratio)
struct suite_change {
  std::vector<task_change> tasks;                       ///< right in both
  std::vector<std::string> won, lost;                   ///< right only after, right only before
  std::vector<std::string> open;                        ///< right in one, and in the other not established or interrupted: nothing is said of them
  std::vector<std::string> other_kind;                  ///< timed as called in one, by the kernel alone in the other: nor of these
  interval mean;                                        ///< geometric, 95% over the tasks (normal); low and high 0 with fewer than three
};
PRAGMA_JSON(suite_change, tasks, won, lost, open, other_kind, mean)
suite_change change_between(const std::vector<task_outcome>& before, const std::vector<task_outcome>& after);

/// One row per category that occurs, in the paper's order, then "all".
std::vector<suite_figures> suite_table(const std::vector<task_outcome>& tasks);

} // namespace pragma::cli
