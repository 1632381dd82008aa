// Which accelerators this machine has: driver, what Torch finds of them, Triton, and the profilers of each backend. Asked with one short
// Python process a backend whose driver is loaded. Used by nodes that offer them, by `pragma doctor` and by `pragma hardware`.
#pragma once

#include "diagnosis/profile.hpp"
#include "devices/backend.hpp"
#include "profilers/hardware.hpp"

#include <atomic>

namespace pragma {

struct accelerator {
  device_choice where;
  machine_limits limits;               ///< what the device is; speeds are 0 unless they were measured earlier on this machine
  bool measured = false;               ///< limits.measured_at tells when
  std::string state;                   ///< driver, clocks, temperature, as the backend's tool prints them; empty: not known
};
PRAGMA_JSON(accelerator, where, limits, measured, state)

/// A backend as this machine has it.
struct accelerator_status {
  std::string backend, title;
  std::string absent;                  ///< why the driver is not there; then nothing else was asked
  std::string executable, python, torch, triton; ///< the Python that was asked, and versions; empty: not there
  std::string problem;                 ///< why there are no devices although the driver is there
  std::vector<accelerator> devices;
  std::vector<tool_status> profilers;
  bool usable() const { return !devices.empty() && !triton.empty(); }
};
PRAGMA_JSON(accelerator_status, backend, title, absent, executable, python, torch, triton, problem, devices, profilers)

/// `registered`: users' profilers, asked beside the shipped ones. Never fails: what is not there is said in the result.
accelerator_status probe_accelerators(const backend& b, const std::vector<json>& registered = {}, const std::atomic<bool>* cancel = nullptr);
/// Facts for people: "sm_90", "132 compute units", "L2 60.0 MiB", "memory 4300.1 GB/s (measured)".
std::vector<std::string> facts_of(const accelerator& device);

} // namespace pragma
