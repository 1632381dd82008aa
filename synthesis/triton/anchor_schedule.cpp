// Tiles of contractions on a device: where they start, and the moves that change them. All sizes are powers of two and at
// least 16, the smallest tile that tl.dot takes.
#include "synthesis/triton/anchor.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

using b = bottleneck;
constexpr int64_t least = 16, longest_step = 128, largest_side = 256;
constexpr int64_t sums_a_thread = 128;     ///< accumulators, of the 255 registers that a thread can have
constexpr int64_t precise_depth = 64;      ///< k from which splitting factors for the tensor cores pays
// Measured on an H200 (Triton 3.6, 2048 x 2048 x 2048): float32 units 42 TFLOP/s. Factors split in the loop reached 35: columns
// that lie along n meet bank conflicts on their way to the tensor cores, which read along k. Laid out and split beforehand the
// loop is bound by the L2 cache: an estimate from its bandwidth.
constexpr double float_flops = 42e12, split_flops = 80e12;
constexpr double split_bytes = 4e12, launch_seconds = 5e-6; ///< a second, and of one more kernel
constexpr int64_t split_depth = 1024;      ///< k from which parts of k are worth a second kernel
constexpr int64_t most_chunks = 128;

/// Tiles and how near to the device's peak their loops come, estimated from loads per multiplication.
struct tile_choice {
  int64_t m, n;
  int warps;
  double speed;
};
const std::vector<tile_choice> tiles{{128, 128, 8, 1.0}, {64, 128, 4, 0.9}, {128, 64, 4, 0.9},  {64, 64, 4, 0.75},  {32, 128, 4, 0.65}, {128, 32, 4, 0.65}, {32, 64, 4, 0.55},
                                     {64, 32, 4, 0.55},  {32, 32, 4, 0.4},  {16, 256, 4, 0.4},  {256, 16, 4, 0.4},  {16, 128, 4, 0.4},  {128, 16, 4, 0.4},  {16, 64, 4, 0.3},
                                     {64, 16, 4, 0.3},   {16, 32, 4, 0.2},  {32, 16, 4, 0.2},   {16, 16, 4, 0.12}};

int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// A contraction as a device sees it: `outer` products of m x k and k x n.
struct device_size {
  int64_t m = 1, n = 1, k = 1, channels = 1, outer = 1;
  bool convolution = false, strided = false;
};

device_size size_on_device(const region& r, bool by_residue) {
  const auto& c = *r.anchor;
  const auto extent = [&](int a) { return r.axes[static_cast<size_t>(a)].extent; };
  device_size s;
  for (int a : c.batch) s.outer *= extent(a);
  for (int a : c.m) s.m *= extent(a);
  s.channels = s.k = extent(c.k);
  s.convolution = c.op != operation::matmul;
  s.strided = s.convolution && c.strided_store();
  if (!s.convolution) {
    for (int a : c.n) s.n *= extent(a);
    return s;
  }
  for (const auto& d : triton_dims(c, by_residue)) {
    s.n *= d.pixels;
    s.k *= *std::max_element(d.taps.begin(), d.taps.end());
    s.outer *= d.residues();
  }
  return s;
}

/// Steps of k that fit the contraction with few idle ones.
int64_t step_for(const device_size& s) {
  const int64_t run = s.convolution && steps_within_taps(s.channels) ? s.channels : s.k;
  if (run <= least) return least;
  return parts(run, 32) * 32 * 100 <= parts(run, least) * least * 115 ? 32 : least;
}

/// What any device could hold; starts_on() knows which one it is.
bool fits(const triton_block& x) {
  return x.lanes >= least && x.columns >= least && x.steps >= least && x.lanes <= largest_side && x.columns <= largest_side && x.steps <= longest_step &&
         x.warps >= 1 && x.warps <= 16 && x.stages >= 1 && x.stages <= 6 && x.lanes * x.columns <= sums_a_thread * 32 * x.warps;
}

/// Applies `change` to the block of every contraction, and to what autotune compares it with.
std::function<bool(triton_schedule&, const loop_program&)> reblocked(std::function<void(triton_block&)> change, int64_t triton_block::*size = nullptr) {
  return [change, size](triton_schedule& s, const loop_program& p) {
    bool changed = false;
    for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i) {
      if (!p.regions[i].anchor) continue;
      auto& of = s.regions[i];
      const auto limits = size_on_device(p.regions[i], of.by_residue);
      const auto fitting = [&](const triton_block& x) { // no tile of which half is always empty
        if (size == &triton_block::lanes && x.lanes >= 2 * limits.m) return false;
        if (size == &triton_block::columns && x.columns >= 2 * limits.n) return false;
        if (size == &triton_block::steps && x.steps >= 2 * limits.k) return false;
        return fits(x);
      };
      auto next = of.block;
      change(next);
      if (!fitting(next) || next == of.block) continue;
      of.block = next;
      std::vector<triton_block> moved;
      for (auto x : of.alternatives) {
        change(x);
        if (fitting(x) && !(x == next) && std::find(moved.begin(), moved.end(), x) == moved.end()) moved.push_back(x);
      }
      of.alternatives = moved;
      changed = true;
    }
    return changed;
  };
}

/// Applies `change` to the schedule of every contraction that it fits.
std::function<bool(triton_schedule&, const loop_program&)> each(std::function<bool(triton_region_schedule&, const region&)> change) {
  return [change](triton_schedule& s, const loop_program& p) {
    bool changed = false;
    for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i)
      if (p.regions[i].anchor) changed = change(s.regions[i], p.regions[i]) || changed;
    return changed;
  };
}

/// The factor that a kernel of its own would lay out: elements, and whether that happens at every call.
bool splitting_pays(const loop_program& p, const region& r, const device_size& s) {
  if (s.k < precise_depth) return false;
  const auto& c = *r.anchor;
  const auto fixed = [&](int buffer) { return p.buffers[static_cast<size_t>(buffer)].kind == buffer_kind::param; };
  if (s.convolution && fixed(c.a)) return true;
  const double flops = 2.0 * static_cast<double>(s.outer) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto elements = [&](const index_form& f, int64_t outer) {
    for (int a : c.batch)
      if (f.coefficient(a) != 0) outer *= r.axes[static_cast<size_t>(a)].extent;
    return static_cast<double>(outer * s.k);
  };
  if (!s.convolution && (fixed(c.a) || fixed(c.b))) {
    // A parameter is laid out once, but its two parts are twice the bytes at every call: a product of few rows is bound by them.
    const double parameter = fixed(c.b) ? elements(c.b_at, s.n) : elements(c.a_at, s.m);
    const double moved = 4 * (elements(c.a_at, s.m) + elements(c.b_at, s.n) + static_cast<double>(s.outer * s.m * s.n));
    return std::max(flops / float_flops, moved / split_bytes) > std::max(flops / split_flops, (moved + 4 * parameter) / split_bytes);
  }
  const double smaller = s.convolution ? elements(c.a_at, s.m) : std::min(elements(c.a_at, s.m), elements(c.b_at, s.n));
  return flops / float_flops > 1.2 * (flops / split_flops + smaller * 12 / split_bytes + launch_seconds);
}

/// Mixed taps of a strided transposed convolution differ from residue to residue: their weights have no one order.
bool can_split_first(const device_size& s) { return !s.convolution || steps_within_taps(s.channels) || !s.strided; }

std::function<bool(triton_schedule&, const loop_program&)> arithmetic(const char* precision, bool split_first) {
  return each([precision = std::string(precision), split_first](triton_region_schedule& s, const region& r) {
    if (s.precision == precision && s.split_first == split_first) return false;
    if (split_first && !can_split_first(size_on_device(r, s.by_residue))) return false;
    s.precision = precision;
    s.split_first = split_first;
    return true;
  });
}

} // namespace

bool weights_have_one_order(const region& r, bool by_residue) { return can_split_first(size_on_device(r, by_residue)); }

bool multiplies_halves(const loop_program& program, const contraction& c) {
  const auto format = [&](int buffer) { return program.buffers[static_cast<size_t>(buffer)].dtype; };
  return is_half(format(c.a)) && format(c.a) == format(c.b);
}

/// Split columns take twice the memory; which side they are is the emitter's choice.
int64_t shared_bytes(const triton_block& x, bool split) {
  return (x.lanes + x.columns + (split ? std::max(x.lanes, x.columns) : 0)) * x.steps * 4 * x.stages;
}

triton_region_schedule starting_anchor_schedule(const loop_program& program, const region& r, const device_sizes& device) {
  triton_region_schedule s;
  const auto& dims = r.anchor->dims;
  // Results of every third or further column lie in sectors of their own: rather multiply some zeros.
  s.by_residue = dims.empty() || !r.anchor->transposed || dims.back().stride <= 2;
  const auto size = size_on_device(r, s.by_residue);
  const auto most_parts = size.strided || size.k < split_depth ? 1 : std::min<int64_t>(most_chunks, size.k / 256);
  struct plan {
    triton_block block;
    int64_t chunks;
    double cost;
  };
  std::vector<plan> plans;
  for (const auto& t : tiles) {
    if (t.m >= 2 * std::max(size.m, least) || t.n >= 2 * std::max(size.n, least)) continue;
    plan x;
    x.block.lanes = t.m;
    x.block.columns = t.n;
    x.block.steps = step_for(size);
    x.block.warps = t.warps;
    x.block.stages = parts(size.k, x.block.steps) >= 3 ? 3 : 2;
    const int64_t programs = size.outer * parts(size.m, t.m) * parts(size.n, t.n);
    // Parts of k are worth a second kernel where a quarter of the units would idle.
    x.chunks = 4 * programs >= 3 * device.units ? 1 : std::clamp<int64_t>(parts(2 * device.units, programs), 1, most_parts);
    // Waves of programs times the work of one; two programs a unit hide each other's latencies, where two fit: of the largest tile one does.
    const bool alone = t.m * t.n >= 128 * 128;
    const double waves = std::ceil(static_cast<double>(programs * x.chunks) / device.units);
    const double work = static_cast<double>(t.m * t.n) * static_cast<double>(size.k) / static_cast<double>(x.chunks) / t.speed;
    x.cost = (std::max(waves, 1.0) + (waves < 2 && !alone ? 0.3 : 0)) * work;
    plans.push_back(x);
  }
  std::stable_sort(plans.begin(), plans.end(), [](const plan& x, const plan& y) { return x.cost < y.cost; });
  s.block = plans[0].block;
  s.chunks = plans[0].chunks;
  if (device.tf32 && can_split_first(size) && splitting_pays(program, r, size)) {
    s.precision = "tf32x3";
    s.split_first = true;
  }
  const auto fitted = [&](triton_block x) { // fewer loads in flight where a unit of the device has less shared memory
    while (x.stages > 1 && shared_bytes(x, s.split_first) > device.shared) --x.stages;
    return x;
  };
  s.block = fitted(s.block);
  // What the estimate cannot tell apart is left to autotune: the next tiles, and more loads in flight.
  for (size_t i = 1; i < plans.size() && s.alternatives.size() < 2; ++i)
    if (plans[i].cost < 1.5 * plans[0].cost && plans[i].chunks == s.chunks) s.alternatives.push_back(fitted(plans[i].block)); // parts are the region's
  auto deeper = s.block;
  deeper.stages = 4;
  if (parts(size.k, deeper.steps) >= 8 && fitted(deeper) == deeper && !(deeper == s.block)) s.alternatives.push_back(deeper);
  return s;
}

bool sound_anchor(const triton_region_schedule& s) {
  const auto sound = [](const triton_block& x) { return x.lanes >= least && x.columns >= least && x.steps >= least; };
  return sound(s.block) && std::all_of(s.alternatives.begin(), s.alternatives.end(), sound);
}

const std::vector<triton_move>& triton_anchor_moves() {
  static const std::vector<triton_move> list{
      {"tensor cores with split factors", "each factor as a sum of two TF32 numbers: three products on tensor cores, right to about 2^-22",
       {b::tensor_cores_idle, b::compute_bound, b::bank_conflicts}, arithmetic("tf32x3", true)},
      {"factors split in the loop", "tensor cores without a kernel that lays a factor out before", {b::tensor_cores_idle, b::launch_bound, b::memory_bandwidth_bound},
       arithmetic("tf32x3", false)},
      {"columns side by side", "results of a strided transposed convolution leave in whole sectors", {b::uncoalesced_access, b::memory_bandwidth_bound},
       each([](triton_region_schedule& s, const region& r) {
         if (!s.by_residue || !r.anchor->strided_store() || r.anchor->dims.back().stride == 1) return false;
         s.by_residue = false;
         return true;
       })},
      {"columns by residue", "no zeros are multiplied in a strided transposed convolution", {b::compute_bound},
       each([](triton_region_schedule& s, const region& r) {
         if (s.by_residue || !r.anchor->strided_store()) return false;
         return s.by_residue = true;
       })},
      {"twice the parts of k", "more programs, so that no unit is idle", {b::tail_effect, b::occupancy_limited, b::latency_bound},
       each([](triton_region_schedule& s, const region& r) {
         const auto size = size_on_device(r, s.by_residue);
         if (size.strided || s.chunks * 2 > most_chunks || size.k / (s.chunks * 2) < 2 * s.block.steps) return false;
         if (s.chunks * 2 > most_partial_sums / (size.outer * size.m * size.n)) return false;
         s.chunks *= 2;
         return true;
       })},
      {"half the parts of k", "fewer sums go through memory", {b::memory_bandwidth_bound, b::launch_bound},
       each([](triton_region_schedule& s, const region&) {
         if (s.chunks < 2) return false;
         s.chunks /= 2;
         return true;
       })},
      {"taller tiles", "each column that is loaded serves more rows", {b::compute_bound, b::memory_bandwidth_bound, b::latency_bound},
       reblocked([](triton_block& x) { x.lanes *= 2; }, &triton_block::lanes)},
      {"wider tiles", "each row that is loaded serves more columns", {b::compute_bound, b::memory_bandwidth_bound, b::latency_bound},
       reblocked([](triton_block& x) { x.columns *= 2; }, &triton_block::columns)},
      {"lower tiles", "more and smaller programs", {b::tail_effect, b::occupancy_limited, b::register_spills},
       reblocked([](triton_block& x) { x.lanes /= 2; }, &triton_block::lanes)},
      {"narrower tiles", "more and smaller programs", {b::tail_effect, b::occupancy_limited, b::register_spills},
       reblocked([](triton_block& x) { x.columns /= 2; }, &triton_block::columns)},
      {"twice the warps", "fewer registers a thread", {b::register_spills, b::latency_bound}, reblocked([](triton_block& x) { x.warps *= 2; })},
      {"half the warps", "more independent multiplications a thread", {b::compute_bound, b::occupancy_limited}, reblocked([](triton_block& x) { x.warps /= 2; })},
      {"more loads in flight", "one more step of k is loaded ahead", {b::latency_bound, b::memory_bandwidth_bound}, reblocked([](triton_block& x) { ++x.stages; })},
      {"fewer loads in flight", "less shared memory, so that more programs run at once", {b::occupancy_limited}, reblocked([](triton_block& x) { --x.stages; })},
      {"longer steps of k", "fewer turns of the loop and fewer waits", {b::latency_bound, b::compute_bound, b::bank_conflicts},
       reblocked([](triton_block& x) { x.steps *= 2; }, &triton_block::steps)},
      {"shorter steps of k", "smaller tiles of the operands", {b::occupancy_limited, b::register_spills, b::bank_conflicts},
       reblocked([](triton_block& x) { x.steps /= 2; }, &triton_block::steps)},
      {"float32 units instead of tensor cores", "factors need not be split", {b::register_spills, b::bank_conflicts, b::latency_bound, b::memory_bandwidth_bound}, arithmetic("ieee", false)},
      {"taller groups of tiles", "rows are read once for more columns", {b::memory_bandwidth_bound},
       each([](triton_region_schedule& s, const region& r) {
         if (r.anchor->op != operation::matmul || s.group >= 32 || size_on_device(r, true).m <= s.block.lanes * s.group) return false;
         s.group *= 2;
         return true;
       })},
      {"lower groups of tiles", "columns stay in the L2 cache", {b::memory_bandwidth_bound},
       each([](triton_region_schedule& s, const region& r) {
         if (r.anchor->op != operation::matmul || s.group <= 1 || size_on_device(r, true).m <= s.block.lanes) return false;
         s.group /= 2;
         return true;
       })},
  };
  return list;
}

} // namespace pragma::synthesis
