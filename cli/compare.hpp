// Recorded results read and set against each other: what `pragma compare` and `pragma bench --compare` share.
#pragma once

#include "cli/suite.hpp"
#include "cli/terminal.hpp"

namespace pragma::cli {

/// Of a bench.json, or of one run's run.json: its tasks, and where they were measured ("CPU; Torch", empty where that is not recorded).
struct recorded_results {
  std::vector<task_outcome> tasks;
  std::string where;
};
/// A file or folder of results, else a run of this machine's store: its id, "last", or a task's name.
expected<recorded_results> read_results(const std::string& named);
/// What changed, a line a task.
void show_change(terminal& out, const suite_change& change);

} // namespace pragma::cli
