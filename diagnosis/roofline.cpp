#include "diagnosis/rules.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr const char* level_names[] = {"L1", "L2", "L3", "memory"};
constexpr size_t memory_level = 3;
constexpr double formula_slack = 1.25; ///< no measurement of the peak is wrong by more

double figure(const std::vector<double>& per_level, size_t level) {
  return per_level.empty() ? 0 : per_level[std::min(level, per_level.size() - 1)];
}

/// Least time to move the bytes when all of them are served by one level. Copying moves as many bytes in as out, so with
/// copying at c and reading at r (bytes/s) a byte read costs 1/r and a byte written 2/c - 1/r, but at least 1/c: stores
/// and loads may overlap. Unknown figures count as no limit.
double seconds_at(size_t level, double bytes, double written, const machine_limits& limits) {
  const double copy = figure(limits.copy_gbs, level) * 1e9, read = figure(limits.read_gbs, level) * 1e9;
  const double fastest = std::max(copy, read);
  if (fastest <= 0) return 0;
  if (written < 0 || copy <= 0 || read <= 0) return bytes / fastest;
  const double out = std::min(written, bytes), in = bytes - out;
  const double write_cost = std::max(0.0, 2 / copy - 1 / read);
  return std::max({in / read + out * write_cost, out / copy, bytes / fastest});
}

} // namespace

roofline_point place_on_roofline(double seconds, double flops, double bytes, const machine_limits& limits, double written_bytes) {
  roofline_point point;
  if (!(seconds > 0)) return point;
  point.gflops = flops / seconds / 1e9;
  point.gbs = bytes / seconds / 1e9;
  if (bytes > 0) point.intensity = flops / bytes;

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
  double compute = limits.peak_gflops > 0 ? flops / (limits.peak_gflops * 1e9) : 0;
  if (compute > formula_slack * seconds) compute = 0; // the answer can be had with fewer operations than the formula counts
  point.attainable_seconds = std::max(move, compute);
  point.share = point.attainable_seconds / seconds;
  if (point.attainable_seconds > 0) point.limit = compute > move ? "peak FLOP/s" : std::string(level_names[level]) + " bandwidth";
  return point;
}

} // namespace pragma
