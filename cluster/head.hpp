// The head: the cluster's Conductors, knowledge and run store behind one port.
#pragma once

#include "cluster/messages.hpp"
#include "cluster/probe.hpp"

#include <atomic>
#include <functional>
#include <optional>

namespace pragma {

struct head_options {
  address listen = {"127.0.0.1", 7447};
  std::optional<std::filesystem::path> tls;
  std::filesystem::path runs;             ///< RocksDB's folder
  std::filesystem::path tasks;            ///< texts of tasks
  std::filesystem::path ready_file;       ///< where not empty: gets "PORT\n" when the head listens (for scripts)
};

/// Serves until `stop`, then lets the runs finish what is in flight (`grace_seconds` at most) and leaves them to be gone on with.
expected<void> serve_head(const head_options& options, const std::atomic<bool>& stop, const std::function<void(const std::string&)>& say,
                          double grace_seconds = 60);

} // namespace pragma
