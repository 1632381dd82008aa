// One user of a device at a time: each command to a candidate or a reference on it holds its lease, a comparison of times holds it from
// the first to the last sample. What takes long without the device (starting processes, making inputs, comparing results) goes on
// meanwhile; `bench --jobs` rests on that. Within a process it is a mutex, between those of one user on one machine a locked file in /tmp,
// which the kernel unlocks when a process is gone.
#pragma once

#include "devices/backend.hpp"

#include <atomic>
#include <filesystem>
#include <memory>

namespace pragma {

class device_lease {
public:
  device_lease() = default;
  device_lease(device_lease&& other) noexcept;
  device_lease& operator=(device_lease&& other) noexcept;
  ~device_lease() { unlock(); }
  bool owns_lock() const { return held_ != nullptr; }
  void unlock();
  /// Another process held the device for so long that this one did not wait for its end.
  bool disturbed() const;

private:
  struct shared;
  friend device_lease lease_device(const device_choice& device, const std::atomic<bool>* cancel);
  shared* held_ = nullptr;
};

/// Waits for the device. Of a CPU, which has a lease of its own (actors/workbench.cpp), it holds nothing, and nothing once `cancel` is true. The same
/// thread may hold it twice.
device_lease lease_device(const device_choice& device, const std::atomic<bool>* cancel = nullptr);

/// The file that stands for a device, or for the processor: of this machine, by the driver's own number where the environment renumbers devices.
std::filesystem::path lease_file(const device_choice& device);

} // namespace pragma
