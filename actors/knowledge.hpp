// The compendium as an agent: opened at the first question (which may build it from the starter entries), then kept open. Spawn it
// detached, it blocks on files.
#pragma once

#include "actors/interfaces.hpp"
#include "knowledge/library.hpp"

#include <memory>
#include <optional>

namespace pragma {

struct knowledge_state {
  static inline const char* name = "knowledge";
  std::optional<library> compendium;
};

knowledge_actor::behavior_type knowledge(knowledge_actor::stateful_pointer<knowledge_state> self, library_paths paths, embedding_config embedding);

/// What a library says of metrics by their names in a profile ("callgrind.Ir", "perf.branch-misses").
expected<looked_up> explain_metrics(const library& compendium, const look_up& wanted);

} // namespace pragma
