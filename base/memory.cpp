#include "base/memory.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace pragma {

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The number behind a name at the start of a line: "MemAvailable:  1234 kB", "inactive_file 4096".
std::optional<uint64_t> number_behind(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t value = 0;
    if (words >> key >> value && key == name) return value;
  }
  return std::nullopt;
}

/// A file that holds one number; none where it says "max" or cannot be read.
std::optional<uint64_t> number_of(const fs::path& file) {
  std::istringstream words(text_of(file));
  uint64_t value = 0;
  if (words >> value) return value;
  return std::nullopt;
}

struct names {
  const char* limit;
  const char* used;
  const char* droppable; ///< in memory.stat: pages of files that nobody used lately
};
constexpr names second{"memory.max", "memory.current", "inactive_file"}, first{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// What the group's own limit leaves.
uint64_t left_in(const fs::path& group, const names& n) {
  const auto limit = number_of(group / n.limit), used = number_of(group / n.used);
  if (!limit || !used) return std::numeric_limits<uint64_t>::max();
  const auto droppable = number_behind(text_of(group / "memory.stat"), n.droppable).value_or(0);
  const auto held = *used - std::min(*used, droppable);
  return *limit - std::min(*limit, held);
}

/// The least of this group and those that hold it. In a container the mount's root may be the group itself, under a path that only the host has.
uint64_t left_up_to(const fs::path& mount, fs::path group, const names& n) {
  auto least = left_in(mount, n);
  group = group.relative_path();
  for (; !group.empty(); group = group.parent_path()) least = std::min(least, left_in(mount / group, n));
  return least;
}

} // namespace

std::optional<uint64_t> available_memory(const fs::path& root) {
  const auto kibibytes = number_behind(text_of(root / "proc/meminfo"), "MemAvailable:");
  auto least = kibibytes ? *kibibytes << 10 : std::numeric_limits<uint64_t>::max();
  const auto groups = root / "sys/fs/cgroup";
  for (const auto& line : split(text_of(root / "proc/self/cgroup"), '\n')) { // "0::/user.slice", "5:cpu,memory:/docker/1f"
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    if (parts[0] == "0" && parts[1].empty()) least = std::min(least, left_up_to(groups, parts[2], second));
    else if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) least = std::min(least, left_up_to(groups / "memory", parts[2], first));
  }
  return least == std::numeric_limits<uint64_t>::max() ? std::nullopt : std::optional(least);
}

} // namespace pragma
