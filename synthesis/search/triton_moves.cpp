// The space of Triton schedules: its moves, which schedules of other runs fit, what is safer than the start.
#include "synthesis/search/search.hpp"
#include "base/language.hpp"
#include "synthesis/triton/emit.hpp"
#include "synthesis/triton/reductions.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using b = bottleneck;
constexpr int64_t largest_tile = 32768;  ///< elements; more than 1024 threads with 32 registers each cannot hold it
constexpr int64_t smallest_tile = 64;
constexpr int most_warps = 32, most_stages = 8;

using change = std::function<bool(triton_region_schedule&, const region&)>;

/// Applies `f` to every region without an anchor; true when some region changed.
std::function<bool(triton_schedule&, const loop_program&)> each(change f) {
  return [f](triton_schedule& s, const loop_program& p) {
    bool changed = false;
    for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i)
      if (!p.regions[i].anchor) changed = f(s.regions[i], p.regions[i]) || changed;
    return changed;
  };
}

bool reduces(const region& r) { return steps_of(r) > 1; }
bool whole(const triton_region_schedule& s, const region& r) { return reduces(r) && s.block.steps >= steps_of(r); }
bool possible(const triton_block& x) {
  return x.lanes >= 1 && x.steps >= 1 && x.lanes * x.steps <= largest_tile && x.warps >= 1 && x.warps <= most_warps && x.warps * 32 <= std::max<int64_t>(32, x.lanes * x.steps);
}

/// Changes the blocks of a region, alternatives as well; those that become impossible are left out.
change resized(std::function<void(triton_block&)> f) {
  return [f](triton_region_schedule& s, const region& r) {
    auto block = s.block;
    f(block);
    if (block == s.block || !possible(block) || block.lanes > power_above(lanes_of(r))) return false;
    if (block.lanes * block.steps < std::min<int64_t>(smallest_tile, s.block.lanes * s.block.steps)) return false;
    s.block = block;
    for (auto& x : s.alternatives) f(x);
    std::erase_if(s.alternatives, [](const triton_block& x) { return !possible(x); });
    return true;
  };
}

/// As resized(), for the number of elements of a long row that a step takes.
change restepped(bool up) {
  return [up](triton_region_schedule& s, const region& r) {
    if (!reduces(r) || whole(s, r)) return false;
    const auto block = s.block;
    const bool changed = resized([up](triton_block& x) { x.steps = up ? x.steps * 2 : std::max<int64_t>(1, x.steps / 2); })(s, r);
    if (!changed || s.block.steps < steps_of(r)) return changed;
    s.block = block; // that would be the whole row: a move of its own
    return false;
  };
}

bool in_registers(triton_region_schedule& s, const region& r) {
  if (!reduces(r) || whole(s, r) || s.chunks > 1) return false;
  auto block = s.block;
  block.steps = power_above(steps_of(r));
  while (block.lanes > 1 && block.lanes * block.steps > largest_tile) block.lanes /= 2;
  block.warps = static_cast<int>(std::clamp<int64_t>(block.lanes * block.steps / 1024, 1, most_warps));
  if (!possible(block)) return false;
  s.block = block;
  s.alternatives.clear();
  return true;
}

bool in_loops(triton_region_schedule& s, const region& r) {
  if (!whole(s, r) || s.block.steps < 256) return false;
  s.block.steps /= 4;
  s.block.warps = std::max(1, s.block.warps / 2);
  s.alternatives.clear();
  return true;
}

bool more_shares(triton_region_schedule& s, const region& r) {
  if (!reduces(r) || r.scan_axis >= 0 || r.has_window() || s.chunks * 2 > most_shares) return false;
  auto block = s.block;
  if (whole(s, r)) block.steps = std::max<int64_t>(1, power_above(steps_of(r)) / 4);
  if (s.chunks * 2 > steps_of(r) / std::max<int64_t>(1, block.steps)) return false;
  if (!(block == s.block)) s.alternatives.clear();
  s.block = block;
  s.chunks *= 2;
  return true;
}

bool choice(triton_region_schedule& s, const region& r) {
  if (!s.alternatives.empty()) return false;
  for (const int warps : {s.block.warps * 2, s.block.warps / 2})
    for (const int64_t lanes : {s.block.lanes, s.block.lanes * 2}) {
      auto x = s.block;
      x.warps = warps;
      x.lanes = lanes;
      if (possible(x) && lanes <= power_above(lanes_of(r)) && (!reduces(r) || r.has_window() || (lanes > 1) == (s.block.lanes > 1))) s.alternatives.push_back(x);
    }
  return !s.alternatives.empty();
}

bool has_pairs(const region& r) {
  if (!reduces(r) || r.has_window()) return false;
  for (const auto& [pass, list] : plan_triton(r, true).reduces)
    for (const auto& x : list)
      if (x.second >= 0) return true;
  return false;
}

const std::vector<triton_move>& region_moves() {
  static const std::vector<triton_move> list{
      {"rows in registers", "several passes need memory once", {b::too_many_passes, b::memory_bandwidth_bound}, each(in_registers)},
      {"twice the results a program", "more loads in flight in each thread", {b::latency_bound, b::memory_latency_bound, b::memory_bandwidth_bound, b::uncoalesced_access, b::launch_bound},
       each(resized([](triton_block& x) { x.lanes *= 2; }))},
      {"half the results a program", "more programs, with fewer registers each", {b::occupancy_limited, b::tail_effect, b::register_spills},
       each(resized([](triton_block& x) { x.lanes = std::max<int64_t>(1, x.lanes / 2); }))},
      {"twice the warps", "fewer elements and registers a thread", {b::register_spills, b::latency_bound, b::occupancy_limited, b::memory_bandwidth_bound},
       each(resized([](triton_block& x) { x.warps *= 2; }))},
      {"half the warps", "more elements a thread: wider loads, less to join", {b::latency_bound, b::memory_bandwidth_bound, b::bank_conflicts, b::compute_bound},
       each(resized([](triton_block& x) { x.warps /= 2; }))},
      {"twice the programs a row", "enough programs for all units", {b::tail_effect, b::occupancy_limited, b::latency_bound}, each(more_shares)},
      {"half the programs a row", "fewer partial results", {b::launch_bound, b::memory_bandwidth_bound},
       each([](triton_region_schedule& s, const region&) { return s.chunks < 2 ? false : (s.chunks /= 2, true); })},
      {"one program a row", "one kernel instead of several", {b::launch_bound},
       each([](triton_region_schedule& s, const region&) { return s.chunks < 2 ? false : (s.chunks = 1, true); })},
      {"longer steps", "more loads in flight in a loop", {b::latency_bound, b::memory_bandwidth_bound, b::memory_latency_bound}, each(restepped(true))},
      {"shorter steps", "fewer registers, so that more programs run at once", {b::register_spills, b::occupancy_limited}, each(restepped(false))},
      {"rows in loops", "fewer registers, at the price of reading again", {b::register_spills, b::occupancy_limited, b::latency_bound}, each(in_loops)},
      {"separate passes", "less arithmetic in each step, one more pass", {b::compute_bound, b::latency_bound, b::register_spills},
       each([](triton_region_schedule& s, const region& r) { return !s.one_pass || whole(s, r) || !has_pairs(r) ? false : (s.one_pass = false, true); })},
      {"one pass less", "mean and variance, or maximum and sum of exponentials, together", {b::too_many_passes, b::memory_bandwidth_bound},
       each([](triton_region_schedule& s, const region& r) { return s.one_pass || whole(s, r) || !has_pairs(r) ? false : (s.one_pass = true); })},
      {"sizes chosen by timing", "Triton times several sizes at the first call", {b::latency_bound, b::memory_bandwidth_bound, b::occupancy_limited}, each(choice)},
      {"one size", "no choice at the first call", {b::launch_bound},
       each([](triton_region_schedule& s, const region&) { return s.alternatives.empty() ? false : (s.alternatives.clear(), true); })},
  };
  return list;
}

/// The parts of k of a schedule that was made for other sizes need not fit these: what all of them sum up has to lie in memory.
bool sums_fit(const triton_region_schedule& s, const region& r) {
  const auto size = size_of_contraction(r);
  int64_t sums = std::min(s.chunks, (size.k + s.block.steps - 1) / s.block.steps);
  if (sums < 2 || r.anchor->strided_store()) return true; // strided transposed convolutions have no parts
  std::vector<int64_t> extents{size.m, size.n};
  for (int a : r.anchor->batch) extents.push_back(r.axes[static_cast<size_t>(a)].extent);
  for (const auto extent : extents) {
    if (extent > most_partial_sums / sums) return false;
    sums *= extent;
  }
  return true;
}

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

bool sound(const triton_block& x) {
  return power_of_two(x.lanes) && power_of_two(x.steps) && power_of_two(x.columns) && power_of_two(x.warps) && x.warps <= most_warps && x.stages >= 1 && x.stages <= most_stages &&
         x.lanes <= largest_tile && x.steps <= largest_tile && x.columns <= largest_tile && x.lanes * x.columns <= largest_tile && x.lanes * x.steps <= largest_tile;
}

bool may_round(const loop_program& p, const region& r, tf32_use allowed) {
  const auto wide = [&](int buffer) { return p.buffers[static_cast<size_t>(buffer)].dtype == dtype::float32; };
  return r.anchor && wide(r.anchor->a) && wide(r.anchor->b) && (allowed == tf32_use::all || (allowed == tf32_use::convolutions && r.anchor->rounding != tf32_rounding::none));
}

bool to_tf32(triton_schedule& s, const loop_program& p, tf32_use allowed) {
  bool changed = false;
  for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i)
    if (may_round(p, p.regions[i], allowed) && s.regions[i].precision != "tf32" && weights_have_one_order(p.regions[i], s.regions[i].by_residue)) {
      s.regions[i].precision = "tf32";
      s.regions[i].split_first = false; // nothing is split any more
      changed = true;
    }
  return changed;
}

} // namespace

const std::vector<triton_move>& triton_moves() {
  static const std::vector<triton_move> list = [] {
    auto all = region_moves();
    const auto& anchors = triton_anchor_moves();
    all.insert(all.end(), anchors.begin(), anchors.end());
    return all;
  }();
  return list;
}

search_space<triton_schedule> triton_space(const loop_program& program, const builtin_options& options, const std::string& title) {
  search_space<triton_schedule> space;
  space.moves = triton_moves();
  const auto rounded = [allowed = options.tf32](triton_schedule& s, const loop_program& p) { return to_tf32(s, p, allowed); };
  if (options.tf32 != tf32_use::none) space.moves.push_back({"TF32", "tensor cores on factors rounded to TF32, where the options allow it", {b::compute_bound, b::tensor_cores_idle}, rounded});
  const device_sizes device(options.machine);
  for (auto& move : space.moves)
    move.apply = [device, apply = move.apply](triton_schedule& s, const loop_program& p) { // a move to what the device cannot start is none
      auto moved = s;
      if (!apply(moved, p) || !starts_on(device, moved, p)) return false;
      s = std::move(moved);
      return true;
    };
  space.start = starting_triton_schedule(program, options.machine);
  if (device.tf32) rounded(space.start, program);
  space.reason = "Starting point from the device's units and the sizes of rows: " + std::to_string(program.regions.size()) +
                 (program.regions.size() == 1 ? " fused region." : " regions.");
  for (size_t i = 0; i < program.regions.size() && i < space.start.regions.size(); ++i) {
    const auto& anchor = program.regions[i].anchor;
    if (!anchor || multiplies_halves(program, *anchor) || space.start.regions[i].precision == "ieee") continue;
    space.reason += space.start.regions[i].precision == "tf32" ? " Contractions run on tensor cores with factors rounded to TF32, as Torch's own may."
                                                               : " Contractions run on tensor cores with each factor split in two TF32 numbers: three products, right to about 2^-22 each.";
    break;
  }
  space.safer_means = "float32 units, one size, separate passes, smaller tiles";
  space.emit = [&program, title](const triton_schedule& s) {
    auto source = emit_triton(program, s, title);
    candidate c;
    c.language = language_name::triton;
    c.compiler = "";
    c.flags = {};
    c.source = std::move(source.text);
    return scheduled_candidate{std::move(c), std::move(source.program)};
  };
  space.fits = [&program, device, allowed = options.tf32](triton_schedule& known) {
    if (known.regions.size() != program.regions.size()) return false;
    for (size_t i = 0; i < known.regions.size(); ++i) { // a store is a file: what stands in it may be anything
      const auto& r = known.regions[i];
      if (program.regions[i].anchor && !(sound_anchor(r) && sums_fit(r, program.regions[i]))) return false;
      const bool known_precision = r.precision == "ieee" || r.precision == "tf32x3" || (r.precision == "tf32" && may_round(program, program.regions[i], allowed));
      if (!known_precision || !sound(r.block) || r.chunks < 1 || r.chunks > most_shares || r.group < 1 || r.group > most_shares) return false;
      if (!std::all_of(r.alternatives.begin(), r.alternatives.end(), sound)) return false;
    }
    return starts_on(device, known, program);
  };
  space.safer = [start = space.start](int step) -> std::optional<triton_schedule> {
    if (step > 1) return std::nullopt;
    auto s = start;
    for (auto& r : s.regions) {
      r.alternatives.clear();
      r.precision = "ieee";
      r.one_pass = false;
      if (step == 0) continue;
      r.chunks = 1;
      r.block.stages = 1;
      r.block.warps = 4;
    }
    return s;
  };
  return space;
}

} // namespace pragma::synthesis
