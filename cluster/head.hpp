// The head: the cluster's Conductors, knowledge and run store behind one port.
#pragma once

#include "cluster/messages.hpp"
#include "cluster/address.hpp"
#include "cluster/dispatcher.hpp"

#include <atomic>
#include <functional>
#include <optional>

namespace pragma {

struct head_options {
  address listen = {"127.0.0.1", 7447};
  int inherited = -1;                     ///< a listening socket from whoever started this process: connections wait in it over a restart; -1: none
  std::optional<std::filesystem::path> tls;
  std::filesystem::path runs;             ///< RocksDB's folder
  std::filesystem::path tasks;            ///< texts of tasks
  std::filesystem::path quotas;           ///< file; may be missing
  std::filesystem::path ready_file;       ///< where not empty: gets "PORT\n" when the head listens (for scripts)
  std::optional<address> peer;            ///< the other head of a pair: one serves, the other stands by (pair.hpp)
  std::filesystem::path pair;             ///< file of what this head knows of the pair
  std::optional<address> metrics;         ///< where /metrics, /healthz and /readyz are served
  dispatch_limits limits;
  double grace_seconds = 5;               ///< at the end, for what is in flight
};

/// Serves until `stop`. Then it is a checkpoint: no new work is given out, what is in flight may end, the rest is asked again by the head that starts next;
/// nothing that was recorded is lost, and no run ends for it. An agent that dies ends it with ec::internal: start it again. One of two heads that may not go on,
/// as the other may serve, has stood down: start it again, and it finds out which of them does.
enum class head_end { stopped, stood_down };
expected<head_end> serve_head(const head_options& options, const std::atomic<bool>& stop);

} // namespace pragma
