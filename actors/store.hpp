// The run store as an agent: RocksDB behind messages. Spawn it detached, it blocks on synced writes, and where it takes turns with others.
#pragma once

#include "actors/interfaces.hpp"
#include "knowledge/run_store.hpp"

#include <functional>
#include <memory>

namespace pragma {

struct store_state {
  static inline const char* name = "store";
};

/// Gives the store for one message: one that is kept open (a head), or one opened in_turn and closed after it (a run of this machine).
using store_opener = std::function<expected<std::shared_ptr<run_store>>()>;
store_actor::behavior_type store(store_actor::stateful_pointer<store_state> self, store_opener open);

/// The store of runs in a folder, whose lists are run_summary: errors as run_store::open.
expected<run_store> open_runs(const std::filesystem::path& folder, run_store::mode m);
run_summary summary_of(const run_header& run);
/// Newest first.
expected<std::vector<run_summary>> list_runs(const run_store& runs);

/// A stored run decoded; parse_error when it was written by something else. Also used by `pragma show`.
expected<run_result> read_run(const run_store& runs, const std::string& id);

} // namespace pragma
