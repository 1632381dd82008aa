// A candidate that runs for the profilers: started once, called as often as they need, and what the kernel's own
// accounting (/proc) says of its threads. Internal to profilers/.
#pragma once

#include "profilers/sources.hpp"

namespace pragma {

class running_candidate {
public:
  runner_process runner;
  double seconds_per_call = 0;
  int slots = 1;
  double timeout_seconds = 30;

  expected<void> call(int64_t calls) { return runner.call(0, slots, calls, timeout_seconds); }
  /// As many calls as fit into `seconds`, at least one.
  int64_t calls_for(double seconds) const;
};

/// Who does a call's work: the context's threads on as many processors, one thread, or all of them on one processor, where the source leaves no other way.
enum class working_team { as_measured, one_thread, on_one_processor };
/// Starts the measured binary on the reference's input slots (filled when nobody has done so) and warms it up.
/// `conditions`: an experiment; `patience`: seconds for a batch of calls, or 100 times what one was measured at.
expected<running_candidate> start_running(const collect_context& context, const run_conditions& conditions = {}, working_team team = working_team::as_measured, double patience = 30);
/// Makes sure that input slot 0 holds the task's own inputs: fresh shared memory holds zeros.
expected<int> filled_slots(reference& ref);

/// software.*: CPU time, context switches, page faults, migrations per call, from /proc.
void software_metrics(const collect_context& context, running_candidate& running, source_result& out);

/// Each thread takes its part by its own number and the source never asks how many there are: alone, a thread would do its part only.
bool has_a_fixed_team(const std::string& source);
/// An experiment's usual runs take about what was measured of the candidate: else something else than the experiment's condition differs.
bool under_usual_conditions(double usual_seconds, double measured_seconds, int threads);
struct compared_rounds {
  double usual = 0, changed = 0; ///< seconds of a call
};
/// What rounds of an experiment say, one of each kind in turn: by the two shortest of each where they agree, else by the ratios of neighbouring rounds, which a slow
/// minute of the machine changes on both sides alike; nothing while both are uncertain by more than `spread` (of 1) or a fifth of the difference.
std::optional<compared_rounds> compare_rounds(const std::vector<double>& usual, const std::vector<double>& changed, double spread);
inline constexpr double settled_experiment = 0.03; ///< what the second shortest time is above the shortest: another round would change nothing
inline constexpr double longest_tried_call = 0.15; ///< seconds: experiments with longer calls would be felt
/// Both alternate until another round would change little. `spread`: what may be uncertain of either time at any rate. candidate_failed: the usual run did not come back, so
/// that nothing more can be tried; measurement_failed: the changed one did not, they do not come to rest, or the usual one differs from what was measured.
expected<compared_rounds> in_turns(const collect_context& context, running_candidate& usual, running_candidate& changed, double spread);
/// `name`: experiment.*; `changed`: in words, for the note.
metric experiment_metric(const std::string& name, const compared_rounds& times, const std::string& changed);
/// experiments.cpp: experiment.*, times of a call under changed conditions in % of the usual one.
void experiment_metrics(const collect_context& context, source_result& out);
/// experiment.apart_time, for a loop whose loads seem to wait for stores at the same place of other pages.
void apart_metric(const collect_context& context, source_result& out);

/// recompiled.cpp: experiment.freed_time, single_time and reciprocal_time, of the same source compiled with leaves that fit its hot loop. `build_seconds`: what compiling it took.
void recompiled_metrics(const collect_context& context, const loop_cost& hot, double build_seconds, source_result& out);
/// The source with float in place of double below its last #include.
std::string in_single_precision(const std::string& source);

/// perf.cpp: hardware counters and top-down where there is a PMU.
void perf_metrics(const collect_context& context, running_candidate& running, source_result& out);
/// Events that were asked for by perf's own names.
void perf_extra_metrics(const collect_context& context, const std::vector<std::string>& events, running_candidate& running, source_result& out);

} // namespace pragma
