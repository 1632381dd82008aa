// The one table of thresholds. docs/diagnosis.md shows it to people; a test keeps the two the same.
#include "base/defaults.hpp"
#include "diagnosis/rule_context.hpp"

#include <algorithm>

namespace pragma {

namespace {

// Sources, in short:
constexpr const char* tma_thresholds = "Linux perf, tools/perf/pmu-events/arch/x86/*/*-metrics.json, MetricThreshold of the top-down metrics (method: Yasin, ISPASS 2014)";
constexpr const char* arithmetic = "arithmetic";
constexpr const char* ours = "our choice: beyond it the roofline explains most of the time";
constexpr const char* ncu_rules = "Nsight Compute 2025.3, rule SOLBottleneck: below 60% of a unit's peak it speaks of latency, above 80% of a limit";
constexpr const char* mca_threshold = "llvm-mca's bottleneck analysis (share of cycles); the limit is our choice";

} // namespace

const std::vector<threshold>& thresholds() {
  static const std::vector<threshold> table = {
      {"topdown.frontend_bound", 15, "%", tma_thresholds, 40},
      {"topdown.bad_speculation", 15, "%", tma_thresholds, 40},
      {"topdown.memory_bound", 20, "%", tma_thresholds, 60},
      {"topdown.core_bound", 10, "%", tma_thresholds, 50},
      {"topdown.retiring", 70, "%", tma_thresholds, 90},
      {"topdown.fetch_latency", 10, "%", tma_thresholds, 30},
      {"topdown.branch_mispredicts", 10, "%", tma_thresholds, 30},
      {"topdown.machine_clears", 10, "%", tma_thresholds, 30},
      {"topdown.heavy_operations", 10, "%", tma_thresholds, 40},
      {"low ipc", 1.5, "1/cycle", "less than half of what 4-wide cores sustain; our choice", 0.5},
      {"high ipc", 2, "1/cycle", "half or more of the slots of a 4-wide core are used; our choice", 3.5},
      {"branch_miss_rate", 3, "%", "two misses per 64-iteration loop; arithmetic", 10},
      {"mispredict cost", 10, "%", "mispredictions x 15 cycles (Agner Fog, Microarchitecture: 12-20) / instructions; arithmetic", 50},
      {"callgrind.branch_miss_rate", 5, "%", "callgrind's predictor is simpler than hardware's, so a higher limit; our choice", 20},
      {"callgrind.I1mr / Ir", 1, "%", "a miss of some 12 cycles every 100 instructions; arithmetic", 5},
      {"hot_loop.instructions", 1000, "count", "Agner Fog, Microarchitecture: micro-op caches hold 1500 to 6750 micro-ops", 4000},
      {"bandwidth share", 60, "%", ours, 90},
      {"low bandwidth share", 40, "%", ours, 10},
      {"peak FLOP/s share", 60, "%", ours, 90},
      {"roofline_share", defaults::stop_at_roofline_share * 100, "%", "base/defaults.hpp, stop_at_roofline_share: what is left lies within the noise of a measurement", 100},
      {"stored share of bytes", 20, "%", "reading a line before it is overwritten adds as many bytes as are stored; arithmetic", 50},
      {"bandwidth share for streaming stores", 35, "%", "stores that fetch their line first reach 2/3 of copy bandwidth at best (3 transfers instead of 2); arithmetic; measured: 0.70-0.74", 60},
      {"traffic / compulsory bytes (passes)", 1.5, "ratio", arithmetic, 3},
      {"traffic / compulsory bytes (stride)", 4, "ratio", "a 64-byte line holds 16 float32: one used of 16 gives 16; arithmetic", 12},
      {"scalar L1d misses per load", 25, "%", "1/16 = 6.25% for sequential float32 in 64-byte lines; four times that; arithmetic", 80},
      {"dTLB-load-misses per 1000 instructions", 5, "1/1000", "a page walk of some 20-30 cycles each; arithmetic", 30},
      {"llvm_mca.register_dependencies", 30, "%", mca_threshold, 80},
      {"llvm_mca.cycles_per_iteration / block_rthroughput", 1.5, "ratio", "1 when resources are the limit; LLVM's llvm-mca documentation", 4},
      {"llvm_mca.resource_pressure", 50, "%", mca_threshold, 95},
      {"llvm_mca.top_port_pressure", 95, "%", mca_threshold, 100},
      {"predicted in-core time / measured time", 60, "%", "llvm-mca's cycles for all instructions of a call, at the clock that the measured peak implies; our choice", 100},
      {"divisions x 5 cycles / cycles per iteration", 50, "%", "uops.info: 256-bit vdivps/vsqrtps every 3.5-6 cycles on Zen 2-4 and Skylake to Alder Lake", 100},
      {"scalar share of the hot loop", 50, "%", "100 - hot_loop.vector_share; our choice", 100},
      {"instructions per float32 element", 8, "count", "a vectorised exp() takes about 30-40 instructions for 8 lanes; arithmetic", 40},
      {"instructions / expected of the hot loop", 4, "ratio", "more than a three-pass kernel explains; our choice", 16},
      {"conditional branches per float32 element", 0.5, "count", "1/8 for a 256-bit loop without unrolling; arithmetic", 1},
      {"software.context_switches", 1, "count", "each costs 1-5 us", 10},
      {"seconds_per_call with threads", 50e-6, "s", "starting and joining a team costs 2-20 us (OpenMP micro-benchmarks, EPCC)", 10e-6},
      {"software.cpus_utilized / threads", 75, "%", "a quarter of the threads' time is spent waiting; our choice", 40},
      {"software.thread_imbalance", 1.2, "ratio", "the slowest thread takes a fifth longer than the mean; our choice", 2},
      {"gain by threads / threads", 75, "%", "a quarter of what more threads could gain is lost; our choice", 50},
      {"samples.library_share, of threads that wait", 15, "%", "our choice: what the OpenMP library takes is waiting and waking", 50},
      {"samples.moving_share beside loops", 5, "%", "a pass that takes a twentieth of the time; our choice", 40},
      {"seconds per instruction", 2e-9, "s", "IPC 0.15 at 3.3 GHz; a denormal operand costs about 150 cycles on Intel (Agner Fog, Instruction tables)", 10e-9},
      {"software.page_faults", 1, "count", "per call; each first touch of a page is an interrupt and a cleared page, some tenths of a microsecond; our choice", 50},
      {"seconds_per_call", 2e-6, "s", "the call, the set-up of loops and constants and the horizontal ends cost some 10-100 ns; our choice", 0.3e-6},
      {"operations for each stored element", 64, "FLOP", "a vectorised exp() takes about 25, tanh() 45 (bench/diagnosis_truth); above that by a half; our choice", 128},
      {"100 - experiment.cached_time", 40, "%", "the rest of the time does not depend on where the data lies; our choice", 80},
      {"experiment.cached_reads_time - experiment.cached_time", 15, "%", "our choice", 50},
      {"experiment.flushed_time", 90, "%", "above the spread of repeated experiments; our choice", 60},
      {"experiment.ones_time", 85, "%", "above the spread of repeated experiments; our choice", 50},
      {"experiment.huge_pages_time", 85, "%", "above the spread of repeated experiments; our choice", 60},
      {"experiment.streaming_time", 90, "%", "above the spread of repeated experiments; our choice", 60},
      {"experiment.apart_time", 93, "%", "above the spread of repeated experiments; our choice", 75},
      {"experiment.freed_time, single_time, reciprocal_time", 90, "%", "above the spread of repeated experiments; our choice", 60},
      {"time that no model explains with data in L1", 15, "%", "above the model's own error on plain loops; our choice", 40},
      {"samples.split_share", 20, "%", "arithmetic: a second access for each of them; our choice", 50},
      {"samples.alias_share", 50, "%", "our choice", 90},
      {"samples.far_share", 50, "%", "our choice", 100},
      {"samples.one_set_share", 50, "%", "our choice", 100},
      {"samples.strided_share", 40, "%", "our choice: an operand of a product is one of two loads", 80},
      {"time in scalar code beside a vector loop", 25, "%", "our choice", 60},
      {"busy unit of a device", 60, "%", ncu_rules, 80},
      {"busiest unit of a device, where warps wait", 60, "%", ncu_rules, 20},
      {"share of a stall reason", 30, "%", "Nsight Compute 2025.3, rule CPIStall speaks from 30% of the cycles between two instructions on (recorded: 40% reported, 29% not)", 70},
      {"theoretical occupancy", 60, "%", "CUDA C++ Best Practices Guide, Occupancy: low occupancy cannot hide latency, above some point more brings nothing; the figure is our choice", 15},
      {"achieved / theoretical occupancy", 80, "%", "Nsight Compute 2025.3, rule AchievedOccupancy, speaks from a difference of about 10 points on; ours is more lenient", 40},
      {"bytes used of a sector", 24, "bytes", "CUDA C++ Best Practices Guide, Coalesced Access to Global Memory: 32-byte transactions; three quarters of one", 8},
      {"sectors per request", 17, "sectors", "a warp's 32 threads with 16 bytes each touch 16 sectors, with 4 bytes 4, one sector each 32; arithmetic", 32},
      {"bank conflicts / wavefronts of shared memory", 20, "%", "CUDA C++ Best Practices Guide, Shared Memory and Memory Banks: conflicts serialise; the figure is our choice", 60},
      {"LDSBankConflict", 5, "%", "ROCm, rocprofiler metrics: share of the GPU's time in which conflicts stall the local data share; the figure is our choice", 25},
      {"local / global memory accesses", 5, "%", "CUDA C++ Best Practices Guide, Local Memory: as slow as global memory; the figure is our choice", 50},
      {"Scratch_Size", 1, "bytes", "ROCm, rocprofv3 kernel trace: bytes of scratch memory of a work item; any are spills", 64},
      {"idle share of the last wave", 15, "%", "1 - waves / whole waves, below one wave by blocks per multiprocessor; arithmetic", 50},
      {"launch latency / time of a call", 30, "%", "arithmetic", 70},
      {"time outside of kernels / time of a call", 40, "%", "1 - gpu__time_duration.sum / time; ncu's clocks differ, so a high limit; our choice", 80},
      {"seconds_per_call on a device", 10e-6, "s", "an empty kernel takes 2 to 5 us (recorded on an H200: 2.1 us as a graph); our choice", 4e-6},
      {"FMA units busy while matrix units idle", 40, "%", "our choice: enough of the time goes into products", 70},
      {"busy ratio of a pipe (msprof)", 0.6, "ratio", "as for the busy unit of a device", 0.8},
      {"scalar ratio (msprof)", 0.3, "ratio", "scalar work that is not hidden behind vector or cube work; our choice", 0.7},
      {"least confidence", 0.2, "", "weaker findings are not reported; our choice", 1},
      {"worse than the best version", 1.1, "ratio", "above the spread of repeated profiles; our choice", 2},
  };
  return table;
}

namespace rule {

const threshold& row(limit which) { return thresholds().at(static_cast<size_t>(which)); }

double severity(limit which, double value) {
  const auto& t = row(which);
  const double beyond = t.full > t.value ? value - t.value : t.value - value;
  if (!(beyond >= 0)) return 0;
  return 0.5 + 0.5 * std::min(1.0, beyond / std::abs(t.full - t.value));
}

} // namespace rule

} // namespace pragma
