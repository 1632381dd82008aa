// One measurement of the processor at a time, and none beside one on a device, whatever number of runs share this process (`bench --jobs`, a node with
// several devices) or, where a file is named, this machine. Devices have leases of their own (devices/device_lease.hpp).
#pragma once

#include "base/file_lock.hpp"
#include "devices/backend.hpp"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <shared_mutex>

namespace pragma {

class machine_lease {
public:
  /// Waits until nobody else measures, or `cancel` is true; who came first is first. `turns`: the file that processes of this machine lock for it, with another beside it (".door");
  /// empty: none.
  machine_lease(const device_choice& where, const std::filesystem::path& turns, const std::atomic<bool>* cancel);

private:
  std::unique_lock<std::shared_mutex> alone_;
  std::shared_lock<std::shared_mutex> beside_;
  std::optional<file_lock> turn_;
};

} // namespace pragma
