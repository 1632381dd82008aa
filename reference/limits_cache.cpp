#include "reference/limits_cache.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"

namespace pragma {

namespace fs = std::filesystem;

namespace {

/// Counted up when figures are measured in another way: those of before say something else. 2: a cache by calls back to back; 3: from a graph.
constexpr const char* how_measured = "3";

fs::path limits_file(const device_choice& device, const std::string& device_name, const std::string& torch) {
  return cache_home() / ("device-" + short_hash(device.text() + '\0' + device_name + '\0' + torch + '\0' + how_measured) + ".json");
}

} // namespace

std::optional<machine_limits> known_limits(const device_choice& device, const std::string& device_name, const std::string& torch) {
  const auto file = limits_file(device, device_name, torch);
  if (auto text = read_file(file))
    if (auto known = parse_json(*text, file.string()))
      if (auto limits = from_json_value<machine_limits>(*known, file.string())) return *limits;
  return std::nullopt;
}

void keep_limits(const machine_limits& limits, const device_choice& device, const std::string& device_name, const std::string& torch) {
  const auto file = limits_file(device, device_name, torch);
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  (void)write_file_atomic(file, json(limits).dump(1));
}

} // namespace pragma
