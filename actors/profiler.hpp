// The Profiler: times and profiles verified candidates. A thin wrapper round the workbench; spawn it detached, it blocks.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/workbench.hpp"

namespace pragma {

struct profiler_state {
  static inline const char* name = "profiler";
};

/// bench: shared with the Verifier of the same node.
profiler_actor::behavior_type profiler(profiler_actor::stateful_pointer<profiler_state> self, std::shared_ptr<workbench> bench);

} // namespace pragma
