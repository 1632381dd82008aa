#include "synthesis/triton/schedule.hpp"

#include "synthesis/schedule/schedule.hpp"
#include "synthesis/triton/reductions.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

constexpr int64_t elements_per_thread = 16;      ///< of a tile: enough loads in flight, few enough registers
constexpr int64_t whole_row_limit = 16384;       ///< elements of a row that stay in registers: 512 threads hold 32 each
constexpr int64_t whole_tile_limit = 8192;       ///< of a tile of columns
constexpr int64_t loop_step = 4096;              ///< elements of a long row at a time
constexpr int threads_of_program = 1024;         ///< at most, on NVIDIA's and AMD's devices
constexpr int threads_that_fill = 1024;          ///< of one compute unit: with 16 bytes in flight each, memory is busy
constexpr double launch_seconds = 3e-6;          ///< of one more kernel, back to back on an H200
constexpr double bytes_per_second = 4e12;        ///< of an H200's memory, as copies reach
constexpr double alone = 2.5;                    ///< times its share of them that a unit reaches while others are idle

int warps_for(int64_t tile) {
  const auto wanted = static_cast<int>(power_above(std::max<int64_t>(1, tile / (32 * elements_per_thread))));
  return std::clamp(wanted, 1, 16);
}

/// True when lanes along the last kept axis read neighbours in memory and steps do not.
bool walks_columns(const region& r) {
  double rows = 0, columns = 0;
  int last_kept = -1, last_reduced = -1;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (!r.axes[a].window) (r.axes[a].reduced ? last_reduced : last_kept) = static_cast<int>(a);
  for (const auto& e : r.exprs) {
    if (e.kind != expr_kind::load) continue;
    double weight = 1;
    for (const auto& t : e.at.terms) weight *= static_cast<double>(r.axes[static_cast<size_t>(t.first)].extent);
    if (last_reduced >= 0 && std::abs(e.at.coefficient(last_reduced)) == 1) rows += weight;
    else if (last_kept >= 0 && std::abs(e.at.coefficient(last_kept)) == 1) columns += weight;
  }
  return columns > rows;
}

void add_alternative(triton_region_schedule& s, triton_block b) {
  if (b == s.block || std::find(s.alternatives.begin(), s.alternatives.end(), b) != s.alternatives.end()) return;
  s.alternatives.push_back(b);
}

void elements(triton_region_schedule& s, int64_t n, const device_sizes& device) {
  s.block = {1024, 1, 1, 4, 1};
  while (s.block.lanes > 128 && n / s.block.lanes < 2 * device.units) s.block.lanes /= 2;
  if (s.block.lanes < 512) s.block.warps = static_cast<int>(std::max<int64_t>(1, s.block.lanes / 128));
  if (n >= (int64_t{1} << 22)) {
    add_alternative(s, {2048, 1, 1, 8, 1});
    add_alternative(s, {4096, 1, 1, 8, 1});
  }
}

void windows(triton_region_schedule& s, int64_t n, const device_sizes& device) {
  s.block = {256, 1, 1, 4, 1};
  while (s.block.lanes > 64 && n / s.block.lanes < 2 * device.units) s.block.lanes /= 2;
  if (s.block.lanes < 256) s.block.warps = static_cast<int>(s.block.lanes / 64);
  if (s.block.lanes == 256) {
    add_alternative(s, {128, 1, 1, 4, 1});
    add_alternative(s, {512, 1, 1, 4, 1});
    add_alternative(s, {1024, 1, 1, 8, 1});
  }
}

void rows(triton_region_schedule& s, const loop_program& p, const region& r, const device_sizes& device) {
  const int64_t n = lanes_of(r), steps = steps_of(r), whole = power_above(steps);
  const auto plan = plan_triton(r, true);
  auto& b = s.block;
  b.stages = 1;
  if (walks_columns(r)) {
    b.lanes = std::min<int64_t>(128, power_above(n));
    while (b.lanes > 32 && n / b.lanes < 2 * device.units) b.lanes /= 2;
    b.steps = std::min(whole, whole_tile_limit / b.lanes);
    if (whole > b.steps && whole * 16 <= 2 * whole_tile_limit && plan.passes > 1) { // narrower, but read once
      b.lanes = std::max<int64_t>(16, 2 * whole_tile_limit / whole);
      b.steps = whole;
    }
  } else {
    const bool keeps = plan.passes > 1 || r.scan_axis >= 0;
    b.lanes = 1;
    b.steps = keeps ? (whole <= whole_row_limit ? whole : loop_step) : (whole <= loop_step ? whole : loop_step / 2);
    if (b.steps == whole)
      while (b.lanes * b.steps < 2048 && b.lanes < power_above(n) && n / (2 * b.lanes) >= 2 * device.units) b.lanes *= 2;
  }
  b.warps = warps_for(b.lanes * b.steps);
  if (r.scan_axis < 0) {
    // Share the rows where their programs alone would leave units idle for longer than more kernels take.
    const int64_t programs = (n + b.lanes - 1) / b.lanes;
    const double bytes = static_cast<double>(bytes_touched(r, p));
    const auto time = [&](int64_t chunks) {
      const double threads = static_cast<double>(programs * chunks) * b.warps * 32;
      const double reads = chunks == 1 && b.steps >= whole ? 1 : std::max(1, plan.passes);
      return bytes * reads / bytes_per_second / std::min(1.0, alone * threads / (static_cast<double>(device.units) * threads_that_fill));
    };
    auto shared = b;
    if (b.steps == whole) shared.steps = std::min<int64_t>(loop_step / 2, whole);
    const int64_t wanted = std::clamp<int64_t>(8 * device.units / std::max<int64_t>(1, programs), 1, most_shares);
    const int64_t chunks = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, steps / (2 * shared.steps)));
    if (chunks > 1 && time(1) > time(chunks) + plan.passes * launch_seconds) {
      s.chunks = chunks;
      b = shared;
      b.warps = warps_for(b.lanes * b.steps);
    }
  }
  if (b.warps < 16) add_alternative(s, {b.lanes, b.steps, 1, b.warps * 2, b.stages});
  if (b.warps > 1) add_alternative(s, {b.lanes, b.steps, 1, b.warps / 2, b.stages});
}

} // namespace

constexpr size_t most_regions_to_tune = 64; ///< each alternative is compiled at the first call, which takes about half a second

device_sizes::device_sizes(const machine_limits& limits) {
  if (limits.compute_units > 0) units = limits.compute_units;
  if (limits.shared_bytes > 0) shared = limits.shared_bytes;
  if (limits.warp_size > 0) warp = limits.warp_size;
  tf32 = limits.backend != "rocm" && !limits.arch.starts_with("gfx");
}

bool starts_on(const device_sizes& device, triton_schedule& s, const loop_program& program) {
  for (size_t i = 0; i < s.regions.size() && i < program.regions.size(); ++i) {
    auto& of = s.regions[i];
    const bool contracts = program.regions[i].anchor.has_value();
    const auto too_large = [&](const triton_block& x) {
      return x.warps * device.warp > threads_of_program || (contracts && shared_bytes(x, of.split_first) > device.shared);
    };
    if (too_large(of.block) || (contracts && of.precision != "ieee" && !device.tf32)) return false;
    std::erase_if(of.alternatives, too_large);
  }
  return true;
}

int64_t power_above(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

int64_t lanes_of(const region& r) {
  int64_t n = 1;
  for (const auto& a : r.axes)
    if (!a.reduced && !a.contracted) n *= a.extent;
  return n;
}

int64_t steps_of(const region& r) {
  int64_t n = 1;
  for (const auto& a : r.axes)
    if (a.reduced && !a.window) n *= a.extent;
  return n;
}

triton_schedule starting_triton_schedule(const loop_program& program, const machine_limits& limits) {
  const device_sizes device(limits);
  triton_schedule s;
  for (const auto& r : program.regions) {
    triton_region_schedule rs;
    if (r.anchor) rs = starting_anchor_schedule(program, r, device);
    else if (r.has_window()) windows(rs, lanes_of(r), device);
    else if (r.reduced_mask() != 0) rows(rs, program, r, device);
    else elements(rs, lanes_of(r), device);
    if (program.regions.size() > most_regions_to_tune) rs.alternatives.clear();
    s.regions.push_back(rs);
  }
  return s;
}

} // namespace pragma::synthesis
