// What a call on a device would take without a bottleneck: whatever is removed, the other units still have to do their work. ncu says how busy each was.
#include "diagnosis/predict.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::rule::device {

namespace {

constexpr double full_use = 0.9;       ///< of a unit's peak, what kernels reach: a plain copy recorded on an H200 had DRAM at 85% and L2 at 91%
constexpr double tf32_products = 3;    ///< that float32's accuracy takes on the matrix units

enum unit : unsigned { arithmetic = 1, first_cache = 2, second_cache = 4, memory = 8 };

/// Share of the time for which this unit of the device was busy, 0..1; 0 = unknown.
double use_of(const facts& f, std::initializer_list<std::string_view> names) {
  const auto* m = f.first(names);
  return m ? m->value / 100 : 0;
}

/// Traffic with DRAM over the bytes that must move, at least 1; 1 = unknown, or too small to be told from what else L2 writes back.
double dram_excess(const facts& f) {
  const auto moved = f.sum({"dram__bytes_read.sum", "dram__bytes_write.sum"});
  if (!moved || f.in.bytes <= 0 || f.in.bytes < static_cast<double>(f.last_level_bytes) / 2) return 1;
  return std::max(1.0, *moved / f.in.bytes);
}

/// A call that only the units outside of `without` keep from being shorter. Bytes that need not move are no work of DRAM's.
double left_to_others(const facts& f, unsigned without) {
  const double dram = use_of(f, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}) / dram_excess(f);
  double most = dram;
  if (!(without & arithmetic)) most = std::max(most, use_of(f, {"sm__throughput.avg.pct_of_peak_sustained_elapsed"}));
  if (!(without & first_cache)) most = std::max(most, use_of(f, {"l1tex__throughput.avg.pct_of_peak_sustained_active", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"}));
  if (!(without & second_cache)) most = std::max(most, use_of(f, {"lts__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}));
  return f.seconds * std::min(1.0, most / full_use);
}

/// Of the time, what all multiprocessors together would need, had they the same share of the blocks.
double evenly_filled(const facts& f) {
  const auto waves = f.value("launch__waves_per_multiprocessor"), grid = f.value("launch__grid_size");
  auto units = f.value("launch__sm_count");
  if (!units && f.in.limits && f.in.limits->compute_units > 0) units = f.in.limits->compute_units;
  double share = 1;
  if (waves && *waves >= 1) share = *waves / std::ceil(*waves - 1e-6);
  else if (grid && units && *grid > 0 && *units > 0) share = *grid / *units / std::ceil(*grid / *units);
  return f.seconds * std::min(1.0, share);
}

/// The arithmetic of a contraction on the matrix units, by the precision that its source names.
double on_matrix_units(const facts& f) {
  if (!f.in.limits || f.in.flops <= 0) return 0;
  const auto& l = *f.in.limits;
  const bool half = f.in.source.find("float16") != std::string::npos;
  const double gflops = half && l.half_gflops > 0 ? l.half_gflops : f.in.tf32 ? l.tf32_gflops : l.tf32_gflops / tf32_products;
  return gflops > 0 ? f.in.flops / (gflops * 1e9) / full_use : 0;
}

} // namespace

double seconds_without(const facts& f, const finding& found) {
  const double launches = std::max(1.0, f.value_or("launches_per_call", 1));
  const bool measured = busiest_unit(f).has_value();
  const double tensor = use_of(f, {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"}) * f.seconds / full_use;
  switch (found.what) {
    case bottleneck::launch_bound: return launches > 1 ? f.seconds / launches : 0;
    case bottleneck::tail_effect: return measured ? std::max(evenly_filled(f), left_to_others(f, arithmetic | first_cache | second_cache)) : evenly_filled(f);
    case bottleneck::too_many_passes: {
      const double busy = std::min(1.0, use_of(f, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}) / full_use);
      return f.seconds * (1 - busy * (1 - 1 / dram_excess(f)));
    }
    case bottleneck::memory_bandwidth_bound:
      if (found.level == "L1" || found.level == "L2") return left_to_others(f, first_cache | second_cache);
      return f.has_roof && f.at_bandwidth ? f.roof.attainable_seconds : 0;
    default: break;
  }
  if (!measured) return 0;
  switch (found.what) {
    case bottleneck::latency_bound:
    case bottleneck::occupancy_limited: return left_to_others(f, 0);
    case bottleneck::uncoalesced_access:
    case bottleneck::atomic_contention: return left_to_others(f, first_cache | second_cache);
    case bottleneck::bank_conflicts: return left_to_others(f, first_cache);
    case bottleneck::register_spills: return std::max(tensor, left_to_others(f, arithmetic | first_cache | second_cache));
    case bottleneck::compute_bound: return std::max(tensor, left_to_others(f, arithmetic));
    case bottleneck::tensor_cores_idle: return std::max(on_matrix_units(f), left_to_others(f, arithmetic | first_cache));
    default: return 0;
  }
}

} // namespace pragma::rule::device
