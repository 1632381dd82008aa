// Timing of candidates in Python on a device: the device's events, its last-level cache flushed before each call, graphs replayed
// where a launch takes longer than the call, alternating with the reference like on the CPU. The events are read in the candidate's
// own process, so our clock stands beside them. Used by time_candidate() and compare_candidates() only; docs/devices.md.
#pragma once

#include "timing/timing.hpp"

namespace pragma {

/// Starts the process that a build keeps, unless it has one that can still be used: verification and timing then need not wait for it.
expected<void> keep_running(const build_output& built, const reference& ref, const timing_options& options);

/// As time_candidate().
expected<timed_verdict> time_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                       const verdict& earlier, const timing_options& options);
/// As compare_candidates(); in one process each, since a device's memory is placed alike in every process.
expected<side_by_side> compare_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                         const build_output& champion, const timing_options& options);

/// The tolerance that the user chose for the verification; 0 when it was the task's or the default.
double chosen_tolerance(const task& t, reference& ref, const verdict& earlier, const task_audit& audit);

} // namespace pragma
