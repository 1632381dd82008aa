// A candidate that is made of several kernels and calls of Torch between them: what a task gets that no kernel computes as a whole. Written by who optimised the
// parts (cli/parts.cpp), read by the drop-in. Its language is "parts"; its source is the JSON of this.
#pragma once

#include "kernels/candidate.hpp"
#include "kernels/task.hpp"

namespace pragma {

inline constexpr const char* parts_language = "parts";

/// One step: a kernel, or nodes of the task's graph (docs/graph.md) that Torch computes.
struct parts_step {
  int region = -1;                       ///< position in parts::regions; -1: Torch's
  json nodes;                            ///< Torch's, in order
  std::vector<std::string> inputs, outputs; ///< ids of tensors; a region's in the order of its task's
};
PRAGMA_JSON(parts_step, region, nodes, inputs, outputs)

/// A part as a task of its own, and the kernel that won there.
struct parts_region {
  pragma::task task;
  candidate code;
  std::vector<std::string> params;       ///< for each of its task's parameters: the whole's, by its id in the graph
  double seconds = 0;                    ///< one call of the kernel alone, as its own run measured it
};
PRAGMA_JSON(parts_region, task, code, params, seconds)

struct parts {
  json inputs, params, constants;        ///< of the whole's graph
  json foreign = json::array();          ///< ... and its tensors of types that no kernel has
  std::vector<std::string> outputs;
  std::vector<parts_step> steps;
  std::vector<parts_region> regions;
};
PRAGMA_JSON(parts, inputs, params, foreign, constants, outputs, steps, regions)

/// parse_error where the candidate's source is none.
expected<parts> parts_of(const candidate& c);
/// `rationale`: for people.
candidate candidate_of(const parts& p, std::string origin, std::string rationale);

/// The language of the kernels: "c++" or "triton".
inline std::string language_of(const parts& p) { return p.regions.empty() ? std::string() : p.regions.front().code.language; }
/// The same of any candidate, in parts or not. parse_error as parts_of().
expected<std::string> language_of_kernels(const candidate& c);
/// Of one kernel, or of all: seconds that a call of it takes at least.
inline double kernel_seconds(const parts& p) {
  double sum = 0;
  for (const auto& r : p.regions) sum += r.seconds;
  return sum;
}

} // namespace pragma
