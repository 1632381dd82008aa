// What eager Torch does for one call of a task, for the story of a report: operators one after the other, each of which reads its tensors and
// writes its result. Counted on the traced graph (docs/graph.md), not measured.
#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

namespace pragma {

struct torch_work {
  std::vector<std::string> operators; ///< in order of execution, "mul"; those that only view a tensor anew are left out
  double bytes = 0;                   ///< read and written by all of them, each tensor each time
};
PRAGMA_JSON(torch_work, operators, bytes)

/// `graph`: the JSON text of a task; nothing where it is empty or not a graph.
torch_work torch_work_of(const std::string& graph);

} // namespace pragma
