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

/// A call that only the units outside of `without` keep from being shorter. Bytes that need not move are no work of DRAM's.
double left_to_others(const facts& f, unsigned without) {
  const double dram = use_of(f, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}) / dram_excess(f).value_or(1);
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

/// The arithmetic of a contraction on the matrix units, in the least precision that the task allows.
double on_matrix_units(const facts& f) {
  if (!f.in.limits || f.in.flops <= 0) return 0;
  const auto& l = *f.in.limits;
  const bool half = f.in.products == product_precision::half && l.half_gflops > 0;
  const double gflops = half ? l.half_gflops : f.in.products == product_precision::float32 ? l.tf32_gflops / tf32_products : l.tf32_gflops;
  return gflops > 0 ? f.in.flops / (gflops * 1e9) / full_use : 0;
}

} // namespace

double seconds_without(const facts& f, const finding& found) {
  const double launches = std::max(1.0, f.value_or("launches_per_call", 1));
  const bool measured = busiest_unit(f).has_value();
  const double tensor = matrix_units_share(f).value_or(0) * f.seconds / full_use;
  const bool product = tensor > 0 && f.in.source.find("tl.dot") != std::string::npos;
  switch (found.what) {
    case bottleneck::launch_bound: { // one launch is left, and one kernel of those that share the rest
      const double launch = std::min(f.seconds, f.in.limits ? f.in.limits->launch_seconds : 0);
      return launches > 1 ? launch + (f.seconds - launch) / launches : 0;
    }
    case bottleneck::tail_effect: return measured ? std::max(evenly_filled(f), left_to_others(f, arithmetic | first_cache | second_cache)) : evenly_filled(f);
    case bottleneck::too_many_passes: {
      const double busy = std::min(1.0, use_of(f, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"}) / full_use);
      return f.seconds * (1 - busy * (1 - 1 / dram_excess(f).value_or(1)));
    }
    case bottleneck::memory_bandwidth_bound:
      // Of a product the loads are much of what the multiprocessors do besides; the matrix units' work stays.
      if (found.level == "L1" || found.level == "L2")
        return product ? std::max(tensor, left_to_others(f, arithmetic | first_cache | second_cache)) : left_to_others(f, first_cache | second_cache);
      return f.has_roof && f.at_bandwidth ? f.roof.attainable_seconds : 0;
    default: break;
  }
  if (!measured) return 0;
  switch (found.what) {
    case bottleneck::latency_bound: return left_to_others(f, waits_for_operands(f) ? first_cache : unit{});
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
