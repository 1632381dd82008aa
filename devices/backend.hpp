// A backend as data (configs/backends/): in what candidates are written, what Torch calls the device, which files its driver
// opens. Used wherever a candidate is built, run or placed; adding one means adding a file.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace pragma {

struct backend {
  std::string name = "cpu", title = "CPU";
  std::string language = "c++";            ///< base/language.hpp
  std::string torch_device;                ///< "cuda", "npu"; empty: this machine's cores
  std::vector<std::string> present;        ///< one of these files exists where the driver is loaded
  std::vector<std::string> device_files;   ///< patterns: what the driver's library opens
  std::vector<std::string> environment;    ///< variables handed on into the sandbox
  std::vector<std::string> readable;       ///< further files and folders that a candidate may read
  std::vector<std::string> visible;        ///< variables that choose and renumber devices, that of the outer numbers last
  std::vector<std::string> clocks;         ///< command that prints a device's state; {index} is replaced by driver_number()
  std::vector<std::string> profilers;      ///< manifests, in the order in which they are asked

  bool on_device() const { return !torch_device.empty(); }
};

/// A file of configs/backends/. parse_error names the key that is missing, unknown (with the known ones) or wrong.
expected<backend> parse_backend(const std::string& text, const std::string& origin);
/// All that are shipped, cpu first.
const std::vector<backend>& backends();
/// invalid_argument with the known names.
expected<backend> find_backend(const std::string& name);
/// Empty when the driver is loaded here, else the reason: "no /dev/nvidiactl".
std::string why_absent(const backend& b);
/// Existing files that match the patterns ('*' within a file name).
std::vector<std::filesystem::path> matching_files(const std::vector<std::string>& patterns);
/// What the driver's own tools call device `index` of this process: with CUDA_VISIBLE_DEVICES=3,5 device 1 is "5". An identifier (GPU-...) stays one.
std::string driver_number(const backend& b, int index);
/// What the clocks command prints for this device, on one line; empty when it cannot be had.
std::string device_state(const backend& b, int index);

/// Where a candidate runs: "cpu", or a device of a backend with its number.
struct device_choice {
  std::string backend;
  int index;
  device_choice(std::string name = "cpu", int number = 0) : backend(std::move(name)), index(number) {}
  bool on_device() const { return backend != "cpu"; }
  /// "cpu", "cuda:0".
  std::string text() const { return on_device() ? backend + ":" + std::to_string(index) : backend; }
};
PRAGMA_JSON(device_choice, backend, index)

} // namespace pragma
