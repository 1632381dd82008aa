// What this machine has, for the ranking and its labels: the processor by its family and model, and the backends whose devices are there.
#include "knowledge/library.hpp"

#include "base/text.hpp"
#include "knowledge/hardware_words.hpp"

#include <algorithm>
#include <fstream>

namespace pragma {

namespace {

struct cpu_model {
  const char* vendor;
  int family, first, last; ///< models, inclusive
  const char* name;
};
// Linux' arch/x86/include/asm/intel-family.h and AMD's processor programming references; what is not here is its maker's.
constexpr cpu_model models[] = {
    {"GenuineIntel", 6, 60, 63, "Haswell"},       {"GenuineIntel", 6, 69, 70, "Haswell"},          {"GenuineIntel", 6, 61, 61, "Broadwell"},
    {"GenuineIntel", 6, 71, 71, "Broadwell"},     {"GenuineIntel", 6, 79, 79, "Broadwell"},        {"GenuineIntel", 6, 86, 86, "Broadwell"},
    {"GenuineIntel", 6, 78, 78, "Skylake"},       {"GenuineIntel", 6, 94, 94, "Skylake"},          {"GenuineIntel", 6, 85, 85, "Skylake"},
    {"GenuineIntel", 6, 142, 142, "Skylake"},     {"GenuineIntel", 6, 158, 158, "Skylake"},        {"GenuineIntel", 6, 106, 108, "Ice Lake"},
    {"GenuineIntel", 6, 125, 126, "Ice Lake"},    {"GenuineIntel", 6, 140, 141, "Tiger Lake"},     {"GenuineIntel", 6, 151, 154, "Alder Lake"},
    {"GenuineIntel", 6, 183, 191, "Alder Lake"},  {"GenuineIntel", 6, 143, 143, "Sapphire Rapids"}, {"GenuineIntel", 6, 207, 207, "Sapphire Rapids"},
    {"GenuineIntel", 6, 173, 174, "Granite Rapids"}, {"AuthenticAMD", 23, 1, 47, "Zen 1"},         {"AuthenticAMD", 23, 48, 255, "Zen 2"},
    {"AuthenticAMD", 25, 0, 15, "Zen 3"},         {"AuthenticAMD", 25, 16, 31, "Zen 4"},           {"AuthenticAMD", 25, 32, 95, "Zen 3"},
    {"AuthenticAMD", 25, 96, 175, "Zen 4"},       {"AuthenticAMD", 26, 0, 255, "Zen 5"}};

std::vector<std::string> processor_names(const hardware_words& words) {
  std::ifstream in("/proc/cpuinfo");
  std::string line, vendor, model_name;
  int family = -1, model = -1;
  while (std::getline(in, line) && !line.empty()) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = trim(std::string_view(line).substr(0, colon)), value = trim(std::string_view(line).substr(colon + 1));
    if (key == "vendor_id") vendor = value;
    else if (key == "model name" || key == "cpu") model_name = value;
    else if (key == "cpu family") family = std::atoi(value.c_str());
    else if (key == "model") model = std::atoi(value.c_str());
    else if (key == "CPU implementer") vendor = "Arm";
  }
  for (const auto& m : models)
    if (vendor == m.vendor && family == m.family && model >= m.first && model <= m.last) return {m.name};
  auto named = words.in_title(model_name);
  if (named.empty() && !vendor.empty()) named = {words.canonical(vendor)};
  return named;
}

bool there(const char* path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

} // namespace

machine_view view_of_this_machine(const glossary& words, const std::vector<profiler_manifest>& profilers) {
  machine_view view;
  view.hardware = processor_names(hardware_words(words));
  std::vector<std::string> backends = {"cpu"};
  if (there("/proc/driver/nvidia/version")) {
    backends.push_back("cuda");
    view.hardware.push_back("NVIDIA");
  }
  if (there("/dev/kfd")) backends.push_back("rocm");
  if (there("/dev/davinci0")) backends.push_back("ascend");
  view.profilers.push_back("pragma");
  for (const auto& m : profilers) {
    if (m.simulates) view.simulators.push_back(m.name);
    else if (std::any_of(m.backend.begin(), m.backend.end(), [&](const auto& b) { return std::find(backends.begin(), backends.end(), b) != backends.end(); }))
      view.profilers.push_back(m.name);
  }
  return view;
}

} // namespace pragma
