// Metrics and timings as plain data: what the Profiler says of one candidate on one device. The vocabulary that
// profilers/ fills, diagnosis/ reasons over and reports show.
#pragma once

#include "base/defaults.hpp"
#include "base/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pragma {

/// How a number was obtained. Never shown without it.
enum class provenance { measured, simulated, static_analysis };
NLOHMANN_JSON_SERIALIZE_ENUM(provenance, {{provenance::measured, "measured"},
                                          {provenance::simulated, "simulated"},
                                          {provenance::static_analysis, "static"}})

struct metric {
  std::string name;              ///< the tool's own name, or ours for derived ones (docs/metrics.md)
  double value = 0;              ///< finite; a metric that could not be had is absent, not zero
  std::string unit;              ///< "%", "1/cycle", "count", "GB/s", "GFLOP/s", "s", "bytes", ""
  std::string tool;              ///< "perf 6.1.187", "callgrind 3.19.0", "timer"
  provenance how = provenance::measured;
  std::string note;              ///< e.g. "scaled to one call", "line 42: not vectorized: ..."
};
PRAGMA_JSON(metric, name, value, unit, tool, how, note)

/// A time ratio with its 95% confidence interval (bootstrap over paired blocks).
struct interval {
  double value = 0, low = 0, high = 0;
};
PRAGMA_JSON(interval, value, low, high)

/// One side-by-side timing of a candidate against a baseline.
struct timing {
  double candidate_seconds = 0;      ///< median of one call
  double baseline_seconds = 0;       ///< median of one call, same inputs, threads, cores and cache temperature
  interval speedup;                  ///< baseline / candidate; > 1 is faster
  std::string baseline;              ///< "torch 1.13.0a0 eager, 1 thread, ATen avx2" or "best (attempt 4)"
  int threads = 1;
  int blocks_accepted = 0, blocks_tried = 0;
  int64_t calls = 0;                 ///< of the candidate, all accepted samples
  std::string cache = "warm";        ///< and how: "flushed; the device's events"
  bool contended = false;            ///< taken although other work was running; the interval may lie
  std::string note;
  /// Torch's call is so short that it is mostly dispatch from Python, and that is in the time.
  bool mostly_dispatch() const { return baseline_seconds < defaults::dispatch_bound_seconds && cache.starts_with("warm"); }
};
PRAGMA_JSON(timing, candidate_seconds, baseline_seconds, speedup, baseline, threads, blocks_accepted, blocks_tried, calls,
            cache, contended, note)

/// What a profiler's own rules say of a kernel, in its words (Nsight Compute's details page).
struct tool_note {
  std::string tool, rule, text;      ///< "ncu 2025.3.1", "SOLBottleneck", "This kernel exhibits low compute throughput ..."
  double gain_percent = 0;           ///< the tool's own estimate of the speed-up; 0 = none given
};
PRAGMA_JSON(tool_note, tool, rule, text, gain_percent)

/// A bottleneck that the manifest of a profiler reads from one of its metrics: diagnose() makes a finding of it.
struct told_bottleneck {
  std::string what;                  ///< name of the class (bottleneck in finding.hpp), checked with the manifest
  std::string tool, metric, unit, why;
  double value = 0, threshold = 0;
  bool below = false;                ///< true: values below the threshold are the bad ones
  double confidence = 0;             ///< 0..1, as the manifest says
  std::vector<std::string> remedies;
};
PRAGMA_JSON(told_bottleneck, what, tool, metric, unit, why, value, threshold, below, confidence, remedies)

/// A compiler remark about a loop of the candidate.
struct remark {
  int line = 0;
  std::string compiler;              ///< "gcc 12.2.0"
  std::string kind;                  ///< "vectorized", "missed", "unrolled"
  std::string text;
};
PRAGMA_JSON(remark, line, compiler, kind, text)

/// An innermost loop of the candidate's machine code: how much of a call runs in it, and what one trip through its body costs with all data in L1.
/// Figures of one trip depend on how far the loop is unrolled: they are compared per FLOP or as seconds of a call (time_table.hpp), never as they are.
struct loop_cost {
  std::string function;
  int line = 0;                      ///< in the candidate's source; 0 = unknown
  double share = 0;                  ///< of the call, 0..1: of its time where `how` is measured (samples), of its instructions where simulated; 0 = unknown
  provenance how = provenance::static_analysis; ///< of `share`
  double trips = 0;                  ///< in one call, over all threads (callgrind); 0 = unknown
  double twin_trips = 0;             ///< the same, from what a twin with other instructions did on the loop's line; 0 = unknown
  double cycles = 0, least_cycles = 0; ///< of one trip: as written, and what the execution units need (llvm-mca); 0 = unknown
  double flops = 0;                  ///< of one trip; a fused multiply-add is two
  double loaded_bytes = 0, stored_bytes = 0; ///< of one trip, the stack left out
  double streamed_bytes = 0;         ///< of stored_bytes: past the caches
  int instructions = 0, vector_bits = 0, divides = 0, gathers = 0, calls = 0, fused = 0; ///< in the body; `fused`: multiply-adds
  int multiplies = -1;               ///< that no addition is fused with; -1 = unknown
  int shuffles = 0;                  ///< permutes, unpacks, inserts, extracts
  int vector_instructions = -1;      ///< that work on vectors, loads and stores among them; -1 = unknown
  int widened = 0;                   ///< conversions of float32 to float64 in a loop whose arithmetic is mostly of float64
  int branches = 0;                  ///< conditional jumps inside of it, beside the one back to its beginning
  int chains = -1;                   ///< registers that carry a floating-point result from one trip to the next; -1 = unknown
  int chain_operations = 0;          ///< one after the other on the longest way of such a result through a trip; 0 = unknown
  double vector_share = -1;          ///< packed share of the floating-point arithmetic, in %; -1 = it has none
  std::string port;                  ///< the busiest, in the scheduling model's name; "" = unknown
};
PRAGMA_JSON(loop_cost, function, line, share, how, trips, twin_trips, cycles, least_cycles, flops, loaded_bytes, stored_bytes, streamed_bytes, instructions, vector_bits, divides,
            gathers, calls, fused, multiplies, shuffles, vector_instructions, widened, branches, chains, chain_operations, vector_share, port)

struct profile {
  std::string candidate;             ///< candidate id
  std::string binary;                ///< sha256 of the very executable that was measured
  std::string device;                ///< model of the CPU, GPU or NPU
  std::string backend = "cpu";       ///< "cpu", "cuda", "rocm", "ascend": which rules read it
  timing time;                       ///< against the reference
  std::vector<metric> metrics;
  std::vector<remark> remarks;
  std::vector<tool_note> notes;      ///< evidence beside ours
  std::vector<std::string> kernels;  ///< names of those that a call launched on the device, each once; empty: no tool looked at calls alone
  bool cut = false;                  ///< a call launched more than that tool looked at: `kernels` are of the first ones
  double device_seconds = 0;         ///< of the kernels of one call, as that tool measured them outside of the candidate's process; 0: unknown
  std::vector<std::string> missing;  ///< "perf: no PMU on this machine", one line per source that could not be had
  double seconds = 0;                ///< what profiling cost
  std::vector<told_bottleneck> told; ///< by manifests' rules
  std::vector<loop_cost> loops;      ///< where the time goes, the most first; CPUs only

  const metric* find(std::string_view name) const {
    for (const auto& m : metrics)
      if (m.name == name) return &m;
    return nullptr;
  }
  std::optional<double> value(std::string_view name) const {
    if (const auto* m = find(name)) return m->value;
    return std::nullopt;
  }
};
PRAGMA_JSON(profile, candidate, binary, device, backend, time, metrics, remarks, notes, kernels, cut, device_seconds, missing, seconds, told, loops)

/// What a machine or a device can do at most, as measured: for a CPU by `pragma hardware` with one thread count, for a device
/// (backend other than "cpu") by a calibration on it. There the vectors have two levels: [0] L2, [1] the device's memory.
struct machine_limits {
  std::string cpu;                   ///< model name, of the device where there is one
  std::string backend = "cpu";
  int threads = 1;
  int cores = 1;
  int simd_bits = 128;
  std::vector<int64_t> cache_bytes;  ///< L1d, L2, L3 (per core for the private ones); devices: L2 alone
  std::vector<double> copy_gbs;      ///< measured copy bandwidth with the working set in L1, L2, L3, memory: read + written bytes per second / 1e9
  std::vector<double> read_gbs;      ///< same, reading only
  double peak_gflops = 0;            ///< measured float32 FMA peak
  std::string measured_at;           ///< ISO date
  // Devices only; 0 = unknown.
  std::string arch;                  ///< "sm_90", "gfx942", "Ascend910B"
  int compute_units = 0;             ///< streaming multiprocessors, compute units, AI cores
  int64_t memory_bytes = 0;
  int64_t shared_bytes = 0;          ///< shared memory of one compute unit that a kernel may use
  int registers = 0;                 ///< 32-bit registers of one compute unit
  int warp_size = 0, max_threads = 0;///< of one compute unit
  double tf32_gflops = 0, half_gflops = 0; ///< measured matrix units: TF32 in, float32 out; float16 in, float32 out. Of a CPU: bfloat16 on its tiles (AMX); 0 where it has none, or the task no such factors
  double launch_seconds = 0;         ///< an empty kernel, measured as candidates are: no call can take less
  // CPUs only; 0 = unknown, empty = not measured.
  std::vector<int64_t> set_bytes;    ///< working sets of all threads beyond L2, ascending; the last one lies in memory
  std::vector<double> set_copy_gbs, set_read_gbs; ///< as copy_gbs and read_gbs, with that many bytes, of the median batch and not of the best: a last-level cache that is shared gives less the more is asked of it
  double clock_ghz = 0;              ///< while one core works: cycles of a chain of additions per nanosecond
  double divide_cycles = 0;          ///< cycles between two float32 divisions of `simd_bits` on one core, measured
  std::string microarchitecture;     ///< "family 25, model 17": what tables of latencies are looked up by; "" = unknown
};
PRAGMA_JSON(machine_limits, cpu, backend, threads, cores, simd_bits, cache_bytes, copy_gbs, read_gbs, peak_gflops, measured_at, arch,
            compute_units, memory_bytes, shared_bytes, registers, warp_size, max_threads, tf32_gflops, half_gflops, launch_seconds, set_bytes, set_copy_gbs, set_read_gbs, clock_ghz, divide_cycles, microarchitecture)

} // namespace pragma
