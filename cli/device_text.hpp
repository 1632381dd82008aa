// Accelerators in words, for `pragma doctor` and `pragma hardware --backend`.
#pragma once

#include "profilers/accelerators.hpp"

namespace pragma::cli {

/// One line of `pragma doctor`: whether it is fine, what it is about, what there is to say.
struct doctor_row {
  bool good = false;
  std::string name, text;
};
/// Of a backend whose driver is loaded: Torch and its devices, Triton, the profilers.
std::vector<doctor_row> doctor_rows(const accelerator_status& s);

/// What a device is and, where it was measured, can do at most.
std::vector<std::string> device_lines(const accelerator& device);

} // namespace pragma::cli
