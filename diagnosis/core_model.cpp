#include "diagnosis/core_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pragma::core {

namespace {

constexpr double divide_cycles = 5;      ///< of 256 bits where nothing was measured; see the table of thresholds
constexpr double scalar_divide_cycles = 3.5; ///< uops.info: vdivss every 3 to 3.5 cycles on Zen 2-4 and Skylake to Alder Lake
constexpr double latency_ratio = 1.5;    ///< see the table of thresholds
constexpr double operation_latency = 4;  ///< cycles; uops.info: additions and multiply-adds take 4 on Skylake to Sapphire Rapids, 3 to 4 on Zen 2-4
constexpr double accounts_for = 0.6;     ///< of a trip
constexpr double units = 2;              ///< of fused multiply-adds in the cores that we know

/// Cycles that `l`'s divisions keep a divider that takes `vector` cycles for 256 bits.
double divisions_of(const loop_cost& l, double vector) {
  const bool scalar = l.vector_bits <= 0 || l.vector_share == 0;
  return l.divides * (scalar ? std::min(scalar_divide_cycles, vector) : vector * std::max(0.5, l.vector_bits / 256.0));
}

} // namespace

std::vector<loop_cost> loops_of(const profile& p) {
  if (!p.loops.empty()) return p.loops;
  const auto instructions = p.value("hot_loop.instructions"), bits = p.value("hot_loop.vector_bits");
  if (!instructions || *instructions <= 0) return {};
  loop_cost l;
  l.instructions = static_cast<int>(*instructions);
  l.line = static_cast<int>(p.value("hot_loop.line").value_or(0));
  l.vector_bits = static_cast<int>(bits.value_or(0));
  l.divides = static_cast<int>(p.value("hot_loop.divides").value_or(0));
  l.gathers = static_cast<int>(p.value("hot_loop.gathers").value_or(0));
  l.calls = static_cast<int>(p.value("hot_loop.calls").value_or(0));
  l.cycles = p.value("llvm_mca.cycles_per_iteration").value_or(0);
  l.least_cycles = p.value("llvm_mca.block_rthroughput").value_or(0);
  l.vector_share = p.value("hot_loop.vector_share").value_or(-1);
  l.chains = static_cast<int>(p.value("hot_loop.chains").value_or(-1));
  const auto executed = p.value("instructions") ? p.value("instructions") : p.value("callgrind.Ir");
  if (executed) l.trips = *executed / *instructions;
  if (l.calls > 0) l.trips = 0; // the instructions of what it calls are counted, too
  return {l};
}

double hertz(const diagnosis_input& in) {
  if (in.limits && in.limits->clock_ghz > 0) return in.limits->clock_ghz * 1e9;
  if (in.limits && in.limits->peak_gflops > 0)
    return in.limits->peak_gflops * 1e9 / (in.limits->simd_bits / 32.0 * 2 * units * std::max(1, in.limits->threads));
  return std::numeric_limits<double>::infinity();
}

double peak_flops_per_cycle(const diagnosis_input& in) {
  const double clock = hertz(in);
  return in.limits && std::isfinite(clock) ? in.limits->peak_gflops * 1e9 / clock / std::max(1, in.limits->threads) : 0;
}

double cycles_of(const loop_cost& l, const diagnosis_input& in) {
  const double peak = peak_flops_per_cycle(in);
  // Only fused operations reach the peak: a loop of plain additions is held to half of it.
  const double most = l.fused > 0 ? peak : peak / 2;
  if (l.cycles <= 0) return 0;
  double cycles = l.cycles;
  // Where the model's divider is what a trip takes, this machine's own counts: an old LLVM has another core's, whose divider may be half as fast.
  const bool divides = l.port.find("Div") != std::string::npos || divisions_of(l, divide_cycles) >= accounts_for * l.cycles; // "SBFPDivider", "Zn3Divider"
  if (in.limits && in.limits->divide_cycles > 0 && divides)
    cycles = std::max({divider_cycles(l, in), l.instructions / instructions_per_cycle, l.chains > 0 ? l.chain_operations * operation_latency : 0.0});
  return std::max(cycles, most > 0 ? l.flops / most : 0);
}

double least_cycles_of(const loop_cost& l, const diagnosis_input& in) {
  loop_cost without = l;
  if (l.least_cycles > 0) without.cycles = std::min(l.cycles, l.least_cycles);
  return cycles_of(without, in);
}

double divider_cycles(const loop_cost& l, const diagnosis_input& in) {
  const bool measured = in.limits && in.limits->divide_cycles > 0 && in.limits->simd_bits > 0;
  return std::min(l.cycles, divisions_of(l, measured ? in.limits->divide_cycles * 256 / in.limits->simd_bits : divide_cycles));
}

double divider_share(const loop_cost& l, const diagnosis_input& in) {
  const double cycles = cycles_of(l, in);
  return cycles > 0 ? std::min(1.0, divider_cycles(l, in) / cycles) : 0;
}

bool waits_for_itself(const loop_cost& l) {
  const bool long_enough = l.chain_operations == 0 || l.chain_operations * operation_latency >= accounts_for * l.cycles;
  return l.chains != 0 && long_enough && l.least_cycles > 0 && l.cycles >= latency_ratio * l.least_cycles;
}

double vector_gain(const diagnosis_input& in, double from_bits) {
  const double simd = in.limits ? in.limits->simd_bits : 256, from = std::max(32.0, from_bits);
  const double by_width = std::max(1.0, simd / from), peak = peak_flops_per_cycle(in);
  return peak > 0 ? std::clamp(peak / (from / 32 * 2 * units), 1.0, by_width) : by_width;
}

} // namespace pragma::core
