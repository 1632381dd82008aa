#include "kernels/task_types.hpp"

#include <algorithm>

namespace pragma {

bool uses(const task& t, dtype type) {
  const auto has = [&](const std::vector<tensor_spec>& tensors) { return std::any_of(tensors.begin(), tensors.end(), [&](const tensor_spec& x) { return x.dtype == type; }); };
  return has(t.inputs) || has(t.params) || has(t.outputs) || t.graph.find(json(type).dump()) != std::string::npos;
}

bool rounds_to_tf32(const task& t, tf32_use allowed) {
  return allowed == tf32_use::all || (allowed == tf32_use::convolutions && t.graph.find("\"rounds\":") != std::string::npos);
}

} // namespace pragma
