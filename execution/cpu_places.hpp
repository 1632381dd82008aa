// Which CPUs a measurement runs on: one memory node, and no two threads on one core where that can be had.
#pragma once

#include <filesystem>
#include <vector>

namespace pragma {

struct cpu_place {
  int cpu = 0;  ///< the kernel's number
  int node = 0; ///< of the memory that is nearest
  int core = 0; ///< the least number among the CPUs that share this core
};

/// Where these CPUs are, by /sys/devices/system; what that does not say is one node, and a core for each. `root`: where /sys is looked for.
std::vector<cpu_place> places_of(const std::vector<int>& cpus, const std::filesystem::path& root = "/");
/// `wanted` of these CPUs, sorted; fewer where there are fewer. Of one node where one has as many, with cores of their own where it has as many of these,
/// the last node and the last cores first (what a system does for itself runs on the first ones).
std::vector<int> choose_cpus(std::vector<cpu_place> places, size_t wanted);
/// Cores of the node that has most of them: as many threads as one process can have there without sharing.
size_t cores_of_one_node(const std::vector<cpu_place>& places);

} // namespace pragma
