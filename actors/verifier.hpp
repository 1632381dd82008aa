// The Verifier: builds and checks candidates. A thin wrapper round the workbench; spawn it detached, it blocks.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/workbench.hpp"

namespace pragma {

struct verifier_state {
  static inline const char* name = "verifier";
};

/// bench: shared with the Profiler of the same node.
verifier_actor::behavior_type verifier(verifier_actor::stateful_pointer<verifier_state> self, std::shared_ptr<workbench> bench);

} // namespace pragma
