#include "execution/cpu_places.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace pragma {

namespace {

namespace fs = std::filesystem;

/// "0-3,8,10-11", as the kernel writes lists of CPUs.
std::vector<int> listed(const fs::path& file) {
  std::ifstream in(file);
  std::vector<int> all;
  for (std::string part; std::getline(in, part, ',');) {
    int first = -1, last = -1;
    const auto* end = part.data() + part.size();
    const auto begun = std::from_chars(part.data(), end, first);
    last = first;
    if (begun.ptr != end && *begun.ptr == '-') std::from_chars(begun.ptr + 1, end, last);
    for (int cpu = first; first >= 0 && cpu <= last; ++cpu) all.push_back(cpu);
  }
  return all;
}

std::map<int, int> nodes_by_cpu(const fs::path& folder) {
  std::map<int, int> nodes;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    const auto name = entry.path().filename().string();
    int node = 0;
    if (!name.starts_with("node") || std::from_chars(name.data() + 4, name.data() + name.size(), node).ec != std::errc{}) continue;
    for (const int cpu : listed(entry.path() / "cpulist")) nodes[cpu] = node;
  }
  return nodes;
}

std::map<int, std::set<int>> cores_by_node(const std::vector<cpu_place>& places) {
  std::map<int, std::set<int>> cores;
  for (const auto& p : places) cores[p.node].insert(p.core);
  return cores;
}

} // namespace

std::vector<cpu_place> places_of(const std::vector<int>& cpus, const fs::path& root) {
  const auto system = root / "sys/devices/system";
  const auto nodes = nodes_by_cpu(system / "node");
  std::vector<cpu_place> places;
  for (const int cpu : cpus) {
    const auto siblings = listed(system / "cpu" / ("cpu" + std::to_string(cpu)) / "topology/thread_siblings_list");
    const auto node = nodes.find(cpu);
    places.push_back({cpu, node == nodes.end() ? 0 : node->second, siblings.empty() ? cpu : *std::min_element(siblings.begin(), siblings.end())});
  }
  return places;
}

std::vector<int> choose_cpus(std::vector<cpu_place> places, size_t wanted) {
  std::map<int, size_t> cpus;
  for (const auto& p : places) ++cpus[p.node];
  const auto cores = cores_by_node(places);
  int chosen = -1; // the node; none: all of them together
  for (const auto& [node, count] : cpus)
    if (count >= wanted) chosen = node;
  for (const auto& [node, of] : cores)
    if (of.size() >= wanted) chosen = node;
  if (chosen >= 0) std::erase_if(places, [&](const cpu_place& p) { return p.node != chosen; });
  std::sort(places.begin(), places.end(), [](const cpu_place& a, const cpu_place& b) { return a.cpu > b.cpu; });
  std::set<int> taken;
  std::vector<int> result, siblings;
  for (const auto& p : places) (taken.insert(p.core).second ? result : siblings).push_back(p.cpu);
  result.insert(result.end(), siblings.begin(), siblings.end());
  result.resize(std::min(result.size(), wanted));
  std::sort(result.begin(), result.end());
  return result;
}

size_t cores_of_one_node(const std::vector<cpu_place>& places) {
  size_t most = 1;
  for (const auto& [node, cores] : cores_by_node(places)) most = std::max(most, cores.size());
  return most;
}

} // namespace pragma
