// A kernel's profile with round figures, for tests of what findings say and promise.
#pragma once

#include "diagnosis/rules.hpp"
#include "diagnosis/time_table.hpp"

#include <algorithm>

namespace made_up {

using namespace pragma;

inline constexpr auto measured = provenance::measured;
inline constexpr auto fixed = provenance::static_analysis;

/// L1 32 KiB, L2 1 MiB, L3 16 MiB; copying 200, 100, 50, 10 GB/s; 4 GHz, two 512-bit multiply-adds a cycle: 256 GFLOP/s.
inline machine_limits machine() {
  machine_limits m;
  m.simd_bits = 512;
  m.cache_bytes = {32 << 10, 1 << 20, 16 << 20};
  m.copy_gbs = {200, 100, 50, 10};
  m.read_gbs = {200, 100, 50, 10};
  m.peak_gflops = 256;
  m.clock_ghz = 4;
  return m;
}

/// A loop with all of the time: 512-bit vectors, `cycles` a trip, no chain.
inline loop_cost vector_loop(double cycles, double loaded, double stored, double flops = 16) {
  loop_cost l;
  l.line = 9;
  l.share = 1;
  l.how = measured;
  l.cycles = l.least_cycles = cycles;
  l.flops = flops;
  l.loaded_bytes = loaded;
  l.stored_bytes = stored;
  l.instructions = 8;
  l.vector_bits = 512;
  l.vector_share = 100;
  l.chains = 0;
  return l;
}

struct kernel {
  profile p;
  machine_limits limits = machine();
  diagnosis_input in;

  kernel(double seconds, const loop_cost& l, double bytes, double written, double flops = 0) {
    p.time.candidate_seconds = seconds;
    p.loops = {l};
    in.bytes = bytes;
    in.written_bytes = written;
    in.flops = flops;
    with("samples.count", 1500).with("samples.far_share", 0).with("samples.strided_share", 0);
    with("hot_loop.line", l.line, fixed).with("hot_loop.instructions", l.instructions, fixed).with("hot_loop.vector_bits", l.vector_bits, fixed);
    with("hot_loop.vector_share", l.vector_share, fixed).with("llvm_mca.cycles_per_iteration", l.cycles, fixed).with("llvm_mca.block_rthroughput", l.least_cycles, fixed);
  }
  kernel& with(const std::string& name, double value, provenance how = measured) {
    p.metrics.push_back({name, value, "", "test", how, ""});
    return *this;
  }
  void without(const std::string& name) { std::erase_if(p.metrics, [&](const metric& m) { return m.name == name; }); }
  std::vector<finding> findings() {
    in.current = &p;
    in.limits = &limits;
    return diagnose(in);
  }
};

inline const finding* find(const std::vector<finding>& found, bottleneck what) {
  for (const auto& f : found)
    if (f.what == what) return &f;
  return nullptr;
}
inline double confidence(const std::vector<finding>& found, bottleneck what) {
  const auto* f = find(found, what);
  return f ? f->confidence : 0;
}
inline double gain(const std::vector<finding>& found, bottleneck what) {
  const auto* f = find(found, what);
  return f && f->seconds_without > 0 ? f->seconds / f->seconds_without : 0;
}

inline constexpr double MB = 1e6;

} // namespace made_up
