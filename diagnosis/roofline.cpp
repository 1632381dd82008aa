#include "diagnosis/roofline.hpp"

#include "base/text.hpp"
#include "kernels/task_types.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

constexpr const char* level_names[] = {"L1", "L2", "L3", "memory"};
constexpr size_t memory_level = 3;
constexpr double inputs_in_turn = 4, small_sets = 512 << 10; ///< of a timing; small tasks have more inputs, in so many bytes
constexpr double formula_slack = 1.25; ///< no measurement of the peak is wrong by more

double figure(const std::vector<double>& per_level, size_t level) {
  return per_level.empty() ? 0 : per_level[std::min(level, per_level.size() - 1)];
}

/// Least time to move the bytes when all of them are served by one level. Copying moves as many bytes in as out, so with
/// copying at c and reading at r (bytes/s) a byte read costs 1/r and a byte written 2/c - 1/r, but at least 1/c: stores
/// and loads may overlap. Unknown figures count as no limit.
double seconds_by(double copy_gbs, double read_gbs, double bytes, double written) {
  const double copy = copy_gbs * 1e9, read = read_gbs * 1e9;
  const double fastest = std::max(copy, read);
  if (fastest <= 0) return 0;
  if (written < 0 || copy <= 0 || read <= 0) return bytes / fastest;
  const double out = std::min(written, bytes), in = bytes - out;
  const double write_cost = std::max(0.0, 2 / copy - 1 / read);
  return std::max({in / read + out * write_cost, out / copy, bytes / fastest});
}

double seconds_at(size_t level, double bytes, double written, const machine_limits& limits) {
  return seconds_by(figure(limits.copy_gbs, level), figure(limits.read_gbs, level), bytes, written);
}

/// What is timed goes over several inputs in turn (docs/measuring.md), so that all of them are the working set.
double set_in_turn(double bytes) { return bytes > small_sets / inputs_in_turn ? inputs_in_turn * bytes : small_sets; }

/// By the working sets that were measured, of the logarithms of their sizes; 0 where none was, or all that is timed lies in L2.
double seconds_by_sets(double bytes, double written, const machine_limits& limits) {
  const auto& sets = limits.set_bytes;
  if (sets.size() < 2 || limits.set_copy_gbs.size() != sets.size() || limits.set_read_gbs.size() != sets.size() || limits.cache_bytes.size() < 2) return 0;
  const double all = set_in_turn(bytes);
  if (all <= static_cast<double>(limits.cache_bytes[1]) * std::max(1, limits.threads)) return 0;
  const auto above = std::find_if(sets.begin(), sets.end(), [&](int64_t one) { return all <= static_cast<double>(one); });
  const auto at = static_cast<size_t>(std::clamp<std::ptrdiff_t>(above - sets.begin(), 1, static_cast<std::ptrdiff_t>(sets.size()) - 1));
  const double from = static_cast<double>(sets[at - 1]), to = static_cast<double>(sets[at]);
  const double part = std::clamp(std::log(all / from) / std::log(to / from), 0.0, 1.0);
  const auto between = [&](const std::vector<double>& gbs) { return gbs[at - 1] + part * (gbs[at] - gbs[at - 1]); };
  return seconds_by(between(limits.set_copy_gbs), between(limits.set_read_gbs), bytes, written);
}

// On a device.
constexpr double measured_low = 1.05;  ///< a measured limit may be too low by this much: shares up to it count as 1
constexpr double l2_keeps = 0.5;       ///< of L2: so much of the outputs may stay there until after the call
constexpr double tf32x3_products = 3;  ///< TF32 products for one of float32's accuracy

/// Least time for the bytes on a device, whose L2 was flushed before the call: inputs come from the device's memory, and outputs
/// go there as far as L2 does not keep them. L2's own bandwidth is no limit here: what it gives depends on the access
/// pattern, and measured figures were exceeded by 15%.
double device_move_seconds(double bytes, double written, const machine_limits& limits) {
  const double l2 = limits.cache_bytes.empty() ? 0 : static_cast<double>(limits.cache_bytes.front());
  const double out = written >= 0 ? std::min(written, bytes) : bytes / 2; // unknown: as favourable as a copy
  const double evicted = std::max(0.0, out - l2_keeps * l2);
  return seconds_at(1, bytes - out + evicted, evicted, limits);
}

/// Least time by the first kind of arithmetic that the measured time does not rule out, and its name; 0 when all are ruled out, as
/// then the answer can be had with fewer operations than the formula counts. Float32 accuracy comes from the FMA units or from
/// three TF32 products, on the matrix units. Operands of two bytes have the matrix units' full rate, however slow a kernel is.
double device_compute_seconds(double seconds, double flops, product_precision products, const machine_limits& limits, std::string& name) {
  const struct {
    const char* name;
    double gflops;
    bool usable;
  } units[] = {{"peak FLOP/s (FP32)", limits.peak_gflops, products == product_precision::float32},
               {"peak FLOP/s (3 x TF32)", limits.tf32_gflops / tf32x3_products, products == product_precision::float32},
               {"peak FLOP/s (TF32)", limits.tf32_gflops, products != product_precision::half},
               {"peak FLOP/s (FP16)", limits.half_gflops, true}};
  for (const auto& unit : units) {
    if (!unit.usable || unit.gflops <= 0) continue;
    const double needed = flops / (unit.gflops * 1e9);
    if (needed > measured_low * seconds) continue;
    name = unit.name;
    return needed;
  }
  return 0;
}

/// On a processor: the first kind of arithmetic that the measured time does not rule out, and its name. Tiles multiply int8 twice as fast as bfloat16.
double processor_compute_seconds(double seconds, double flops, const machine_limits& limits, std::string& name) {
  name = "peak FLOP/s";
  const double vectors = limits.peak_gflops > 0 ? flops / (limits.peak_gflops * 1e9) : 0;
  if (vectors <= formula_slack * seconds || limits.half_gflops <= 0) return vectors;
  const double halves = flops / (limits.half_gflops * 1e9), bytes = halves / 2;
  name = halves <= measured_low * seconds ? "peak FLOP/s (bfloat16 tiles)" : "peak FLOP/s (int8 tiles)";
  return halves <= measured_low * seconds ? halves : bytes;
}

roofline_point place_on_device(roofline_point point, double seconds, const roofline_work& call, const machine_limits& limits) {
  const double move = call.bytes > 0 ? device_move_seconds(call.bytes, call.written_bytes, limits) : 0;
  std::string unit;
  const double compute = device_compute_seconds(seconds, call.flops, call.products, limits, unit);
  const double launch = std::max(0.0, limits.launch_seconds), work = std::max(move, compute);
  point.attainable_seconds = launch + work;
  point.share = point.attainable_seconds / seconds;
  // Launching hides behind the work and is measured otherwise than some calls are (graphs): it never makes more than all. A
  // time below what the work alone needs stays visible.
  if (point.share > 1) point.share = work <= measured_low * seconds ? 1 : work / seconds;
  point.needed_share = point.share;
  point.likely_seconds = point.attainable_seconds;
  if (point.attainable_seconds > 0) point.limit = launch > work ? "launch latency" : compute > move ? unit : "DRAM bandwidth";
  return point;
}

} // namespace

product_precision products_of(const task& t, tf32_use allowed) {
  const auto wide = rounds_to_tf32(t, allowed) ? product_precision::tf32 : product_precision::float32;
  bool half = false;
  for (const auto* tensors : {&t.inputs, &t.params})
    for (const auto& one : *tensors) {
      if (is_floating(one.dtype) && size_of(one.dtype) > 2) return wide;
      half = half || is_floating(one.dtype);
    }
  return half ? product_precision::half : wide;
}

roofline_work work_of(const task& t, tf32_use allowed) {
  roofline_work work{t.flops, t.bytes, t.outputs.empty() ? -1.0 : 0.0, products_of(t, allowed), t.category == "matmul" || t.category == "conv"};
  for (const auto& output : t.outputs) work.written_bytes += static_cast<double>(output.bytes());
  return work;
}

roofline_point place_on_roofline(double seconds, const roofline_work& work, const machine_limits& limits) {
  roofline_point point;
  if (!(seconds > 0)) return point;
  const double flops = work.flops, bytes = work.bytes, written_bytes = work.written_bytes;
  point.gflops = flops / seconds / 1e9;
  point.gbs = bytes / seconds / 1e9;
  if (bytes > 0) point.intensity = flops / bytes;
  if (limits.backend != "cpu") return place_on_device(std::move(point), seconds, work, limits);

  // Repeated calls on warm caches: the fastest level that holds all of the working set serves it. Just above a level's
  // size a part still hits, how much depends on the replacement policy: up to twice the size we grant the share that fits.
  double move = 0;
  size_t level = memory_level;
  if (bytes > 0) {
    const size_t levels = std::min(limits.cache_bytes.size(), memory_level);
    for (size_t i = 0; i < levels; ++i) {
      const bool shared = i == 2; // L3
      const double size = static_cast<double>(limits.cache_bytes[i]) * (shared ? 1 : std::max(1, limits.threads));
      if (size <= 0 || bytes > 2 * size) continue;
      level = bytes <= size ? i : std::min(i + 1, memory_level);
      const double hits = bytes <= size ? 1 : 2 - bytes / size;
      move = hits * seconds_at(i, bytes, written_bytes, limits);
      if (hits < 1) move += (1 - hits) * seconds_at(level, bytes, written_bytes, limits);
      break;
    }
    if (level == memory_level && move <= 0) move = seconds_at(memory_level, bytes, written_bytes, limits);
  }
  std::string unit;
  double compute = processor_compute_seconds(seconds, flops, limits, unit);
  point.share = std::max(move, compute) / seconds;
  point.skips_work = compute > formula_slack * seconds; // the answer can be had with fewer operations than the formula counts
  if (point.skips_work) compute = 0;
  point.attainable_seconds = std::max(move, compute);
  point.likely_seconds = std::max(point.attainable_seconds, seconds_by_sets(bytes, written_bytes, limits));
  point.needed_share = point.attainable_seconds / seconds;
  if (point.attainable_seconds > 0) point.limit = compute > move ? unit : std::string(level_names[level]) + " bandwidth";
  return point;
}

machine_limits better_of(machine_limits limits, const machine_limits& others) {
  const auto higher = [](std::vector<double>& ours, const std::vector<double>& theirs) {
    for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) ours[i] = std::max(ours[i], theirs[i]);
  };
  higher(limits.copy_gbs, others.copy_gbs);
  higher(limits.read_gbs, others.read_gbs);
  for (const auto figure : {&machine_limits::peak_gflops, &machine_limits::tf32_gflops, &machine_limits::half_gflops, &machine_limits::clock_ghz})
    limits.*figure = std::max(limits.*figure, others.*figure);
  if (others.divide_cycles > 0 && (limits.divide_cycles <= 0 || others.divide_cycles < limits.divide_cycles)) limits.divide_cycles = others.divide_cycles;
  if (others.launch_seconds > 0 && (limits.launch_seconds <= 0 || others.launch_seconds < limits.launch_seconds)) limits.launch_seconds = others.launch_seconds;
  return limits;
}

std::string roofline_text(const roofline_point& point) {
  if (point.limit.empty()) return {};
  const auto percent = [](double share) { return format_number(100 * share, 0) + "%"; };
  if (!point.skips_work) return percent(point.share) + " of the measured " + point.limit;
  return "more FLOP/s than the peak for the work as the reference writes it: part of that is not executed; its bytes need " + percent(point.needed_share) +
         " of the time at the measured " + point.limit;
}

} // namespace pragma
