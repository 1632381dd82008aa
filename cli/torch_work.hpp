// What eager Torch does for one call of a task, for the story of a report: operators one after the other, each of which reads its tensors and
// writes its result. Operators and bytes are counted on the traced graph (docs/graph.md); times are Torch's profiler's.
#pragma once

#include "base/json.hpp"
#include "kernels/task.hpp"

#include <string>
#include <vector>

namespace pragma {

struct torch_work {
  std::vector<std::string> operators; ///< in order of execution, "mul"; those that only view a tensor anew are left out
  double bytes = 0;                   ///< read and written by all of them, each tensor each time
  std::vector<operator_time> times;   ///< of the operators that Model calls, the longest first (Torch's composed ones count as one); empty: not measured
};
PRAGMA_JSON(torch_work, operators, bytes, times)

/// `graph`: the JSON text of a task; nothing where it is empty or not a graph.
torch_work torch_work_of(const std::string& graph);

} // namespace pragma
