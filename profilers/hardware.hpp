// What this machine is and what it can do at most: lscpu facts, and the roofline measured once (copy and read bandwidth
// per cache level, float32 FMA peak) and cached. Used by `pragma hardware`, the Profiler, the Conductor and `pragma doctor`.
#pragma once

#include "base/error.hpp"
#include "diagnosis/profile.hpp"

#include <functional>

namespace pragma {

/// From lscpu -J, /proc and /sys; missing facts are empty or zero.
struct cpu_facts {
  std::string model, vendor, virtualization;
  std::string microarchitecture;          ///< "family 25, model 17"; aarch64: "implementer 0x41, part 0xd0c"
  int cores = 0, logical = 0, sockets = 0, numa_nodes = 0;
  int simd_bits = 128;                    ///< widest of sse2, avx2, avx512f
  std::vector<std::string> isa;           ///< "avx2", "fma", "avx512f", ...
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0; ///< per core for L1d and L2, per instance for L3
  int64_t memory_bytes = 0;
  bool has_pmu = false;                   ///< /sys/bus/event_source/devices/cpu*
};
PRAGMA_JSON(cpu_facts, model, vendor, virtualization, microarchitecture, cores, logical, sockets, numa_nodes, simd_bits, isa, l1d_bytes,
            l2_bytes, l3_bytes, memory_bytes, has_pmu)

expected<cpu_facts> read_cpu_facts();

/// One cache of CPU 0 as the kernel describes it; zeros where it does not.
struct cache_geometry {
  int64_t bytes = 0, line_bytes = 0, ways = 0;
};
/// type: "Data", "Instruction" or "Unified".
cache_geometry read_cache_geometry(int level, const std::string& type);

/// Measures bandwidth and peak with `threads` threads (about 3 s), or returns what an earlier call cached in cache_home()
/// for the same CPU model and thread count. A repeated measurement can only raise a figure (delete the file to start
/// afresh). Where other work left no batch alone for some figure, all of them stand for now only: they are not kept, and measured_at
/// is empty. `progress` gets (done, total, what).
expected<machine_limits> machine_roofline(int threads, bool remeasure = false,
                                          const std::function<void(int, int, const std::string&)>& progress = {});

/// One line of `pragma doctor`.
struct tool_status {
  std::string name;     ///< "perf", "valgrind", "llvm-mca", "gcc", "clang", "python with torch"
  bool found = false;
  std::string version, problem, enables; ///< problem: "no PMU on this machine"; enables: what it would give
};
PRAGMA_JSON(tool_status, name, found, version, problem, enables)
std::vector<tool_status> profiler_tools();

} // namespace pragma
