// One user of a device at a time within this process: each command to a candidate or a reference on it holds its lease, a comparison of
// times holds it from the first to the last sample. What takes long without the device (starting processes, making inputs, comparing
// results) goes on meanwhile; `bench --jobs` rests on that.
#pragma once

#include "kernels/backend.hpp"

#include <map>
#include <mutex>

namespace pragma {

/// Waits for the device. Of a CPU, which has a lease of its own (actors/workbench.cpp), it holds nothing. The same thread may hold it twice.
inline std::unique_lock<std::recursive_mutex> lease_device(const device_choice& device) {
  static std::mutex lock;
  static std::map<std::string, std::recursive_mutex> leases;
  if (!device.on_device()) return {};
  const auto which = [&]() -> std::recursive_mutex& {
    const std::lock_guard guard(lock);
    return leases[device.text()];
  };
  return std::unique_lock(which());
}

} // namespace pragma
