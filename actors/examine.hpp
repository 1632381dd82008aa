// One candidate that the user has, without the loop: verified, timed, profiled, diagnosed. Functions that give back what they found;
// who asked (pragma verify and profile, the MCP server) shows it. Also the one place that makes the input of a diagnosis.
#pragma once

#include "actors/workbench.hpp"
#include "diagnosis/rules.hpp"

#include <functional>
#include <optional>

namespace pragma {

/// What diagnose() is asked with, for a profile of `source`, built with `flags`, on a loaded task. `current` and `best` (may be null) must outlive it.
diagnosis_input diagnosis_of(const loaded_task& loaded, const load_request& load, const profile& current, const profile* best, const std::string& source,
                             const std::vector<std::string>& flags = {});

struct examine_request {
  pragma::candidate candidate;
  bool measure = false;                    ///< time it; without, it is verified only
  bool profile = true;                     ///< with `measure`: read the profilers and diagnose
  double profile_seconds = 10;             ///< of all tools together
  std::vector<std::string> extra_metrics;
  std::optional<pragma::candidate> against; ///< with `measure`: timed side by side with this one
  std::string against_name = "the other candidate"; ///< for messages
};

struct examination {
  std::string task, device, baseline;      ///< the task's name, what it ran on, what Torch is
  std::string candidate, language, against; ///< ids of the candidates
  pragma::verdict verdict;                 ///< after the audits that timing makes possible, where it was timed
  bool measured = false;                   ///< `profile` and `findings` are there
  pragma::profile profile;
  std::vector<finding> findings;
  diagnosed_with with;                     ///< what these rest on
  time_table table;                        ///< where the time of a call goes; empty on a device
  bool compared = false;                   ///< `side_by_side` was measured in alternation with the other one
  timing side_by_side;
};

/// As `--json` prints it.
json document(const examination& e);

/// A task that a null kernel would pass is refused (task_invalid).
expected<loaded_task> load_checked(workbench& bench, const load_request& load);

/// A wrong candidate is a verdict, not an error; `on_step` hears what is being done. candidate_failed: the other one is not right.
expected<examination> examine(workbench& bench, const loaded_task& loaded, const load_request& load, const examine_request& request,
                              const std::function<void(const std::string&)>& on_step = {});

} // namespace pragma
