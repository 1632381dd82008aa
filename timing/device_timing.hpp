// Timing of candidates in Python on a device: the device's events, its last-level cache flushed before each call, graphs replayed
// where a launch takes longer than the call, alternating with the reference like on the CPU. The events are read in the candidate's
// own process, so our clock stands beside them. Used by time_candidate() and compare_candidates() only; docs/devices.md.
#pragma once

#include "timing/time_pair.hpp"

namespace pragma {

/// Starts the process that a build keeps, unless it has one that can still be used: verification and timing then need not wait for it.
expected<void> keep_running(const build_output& built, const reference& ref, const timing_options& options);

/// As time_pair(), of one candidate and the reference, in the process that the build keeps. `torch_operators`: what its calls left to Torch when it was
/// verified. What was found ends the process.
expected<timed_pair> time_pair_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& built,
                                         const std::vector<std::string>& torch_operators, const timing_options& options);
/// As compare_candidates(); in one process each, since a device's memory is placed alike in every process.
expected<side_by_side> compare_on_device(const task& t, const task_audit& audit, reference& ref, const build_output& challenger,
                                         const build_output& champion, const timing_options& options);

} // namespace pragma
