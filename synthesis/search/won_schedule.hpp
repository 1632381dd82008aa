// Schedules that won, kept so that tasks like theirs start from them. The run store holds one list per family; the Conductor
// carries them to the built-in coder.
#pragma once

#include "kernels/task.hpp"

#include <string>
#include <vector>

namespace pragma {

struct won_schedule {
  std::string task, run;       ///< where it won
  std::string schedule;        ///< JSON text
  std::vector<int64_t> sizes;  ///< of that task, see sizes_of()
  double speedup = 0;          ///< against the reference, as confirmed
};
PRAGMA_JSON(won_schedule, task, run, schedule, sizes, speedup)

/// One family's, as the store keeps them.
struct won_schedules {
  std::vector<won_schedule> all;
};
PRAGMA_JSON(won_schedules, all)

/// Tasks with one key have the same operators on tensors of the same types and ranks, on the same backend with the same number of threads: a
/// schedule of one has a meaning for the other. Empty for a task without a graph.
std::string schedule_family(const task& t, int threads, const std::string& backend = "cpu");
/// Extents of all inputs and parameters, one after the other.
std::vector<int64_t> sizes_of(const task& t);
/// The one whose sizes are nearest (sum of |log| of the ratios); null when there is none of as many sizes.
const won_schedule* nearest_schedule(const won_schedules& known, const task& t);
/// Adds one; it takes the place of one with equal sizes, and of the oldest when there are many.
void remember(won_schedules& known, won_schedule won);

} // namespace pragma
