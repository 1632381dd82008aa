// The space of schedules for processors: its moves, which schedules of other runs fit, what is safer than the start.
#include "synthesis/search/search.hpp"

#include "synthesis/cpp/emit.hpp"
#include "synthesis/schedule/passes.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using b = bottleneck;
constexpr int most_unrolled = 16, widest_tile = 64, farthest_prefetch = 1 << 14; ///< steps, vectors, elements

/// Applies `change` to every loop region that it fits; true when some region changed.
template <class Change> bool each_region(schedule& s, const loop_program& p, Change change) {
  bool changed = false;
  for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i)
    if (!p.regions[i].anchor) changed = change(s.regions[i], p.regions[i]) || changed;
  return changed;
}

bool scale(int& value, int low, int high, bool up) {
  const int next = up ? value * 2 : value / 2;
  if (next < low || next > high) return false;
  value = next;
  return true;
}

/// Applies `change` to the blocks of every product and convolution.
std::function<bool(schedule&, const loop_program&)> reblocked(std::function<void(blocking&, const contraction_size&, int lanes)> change) {
  return [change](schedule& s, const loop_program& p) {
    bool changed = false;
    for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i) {
      if (!p.regions[i].anchor || p.regions[i].anchor->recurrent()) continue;
      auto next = s.regions[i].block;
      change(next, size_of_contraction(p.regions[i]), s.lanes);
      next = fitted(next, p.regions[i], s.lanes);
      changed = changed || json(next) != json(s.regions[i].block);
      s.regions[i].block = next;
    }
    return changed;
  };
}

/// The next of the register tiles that compilers keep in registers. Where the processor's tiles multiply, vectors are the other way.
void next_tile(blocking& block, const contraction_size& size, int lanes) {
  if (block.tiles()) {
    block = {12, 2, size.m, block.n, std::min<int64_t>(block.k, 256), size.m * size.k * 4 <= (int64_t{32} << 20)};
    return;
  }
  static const std::vector<std::pair<int, int>> sixteen_registers{{6, 2}, {4, 3}, {5, 2}, {8, 1}, {12, 1}}, more{{14, 2}, {8, 3}, {12, 2}, {12, 1}};
  const auto& tiles = lanes == 16 ? more : sixteen_registers;
  const auto at = std::find(tiles.begin(), tiles.end(), std::pair{block.rows, block.vectors});
  std::tie(block.rows, block.vectors) = at == tiles.end() || at + 1 == tiles.end() ? tiles.front() : *(at + 1);
}

std::function<bool(schedule&, const loop_program&)> unrolled(bool up) {
  return [up](schedule& s, const loop_program& p) {
    return each_region(s, p, [&](region_schedule& rs, const region& r) { return row_mode(r, rs) && scale(rs.unroll, 1, most_unrolled, up); });
  };
}

std::function<bool(schedule&, const loop_program&)> tiled(bool up) {
  return [up](schedule& s, const loop_program& p) {
    return each_region(s, p, [&](region_schedule& rs, const region& r) {
      return rs.vector_axis >= 0 && !row_mode(r, rs) && scale(rs.tile, 1, widest_tile, up);
    });
  };
}

const std::string openmp = "-fopenmp";

bool has_flag(const schedule& s, const std::string& flag) { return std::find(s.flags.begin(), s.flags.end(), flag) != s.flags.end(); }

/// Is this compiler one of those that the builder has? Nothing is known of a builder without any.
bool installed(const std::vector<std::string>& compilers, const std::string& name) {
  return compilers.empty() || std::find(compilers.begin(), compilers.end(), name) != compilers.end();
}

/// On one thread clang does what gcc does; more need the OpenMP library.
void use_clang(schedule& s) {
  s.compiler = "clang";
  s.threads = 1;
  std::erase(s.flags, openmp);
}

bool set_flag(schedule& s, const std::string& flag, const std::string& instead_of = "") {
  if (has_flag(s, flag)) return false;
  if (!instead_of.empty()) {
    const auto it = std::find(s.flags.begin(), s.flags.end(), instead_of);
    if (it == s.flags.end()) return false;
    *it = flag;
  } else {
    s.flags.push_back(flag);
  }
  return true;
}

bool next_vector_axis(schedule& s, const loop_program& p) {
  return each_region(s, p, [&](region_schedule& rs, const region& r) {
    const auto axes = vector_axes(r, s.lanes);
    const auto it = std::find(axes.begin(), axes.end(), rs.vector_axis);
    if (axes.size() < 2 || it == axes.end() || it + 1 == axes.end()) return false;
    rs.vector_axis = *(it + 1);
    rs.stream = rs.stream && can_stream(r, rs, s.lanes);
    return true;
  });
}

} // namespace

/// Ordered by what they gained on average where they were tried (docs/synthesis.md has the figures).
const std::vector<schedule_move<schedule>>& moves() {
  static const std::vector<schedule_move<schedule>> list{
      {"clang", "another compiler's scheduling and register allocation",
       {b::not_vectorized, b::port_pressure, b::front_end_bound, b::dependency_chain, b::scalar_tail},
       [](schedule& s, const loop_program&) {
         if (s.compiler == "clang" || has_flag(s, openmp)) return false; // its OpenMP library cannot be linked here
         s.compiler = "clang";
         return true;
       }},
      {"wider tile", "more columns per step: longer runs of contiguous memory",
       {b::strided_access, b::dependency_chain, b::port_pressure, b::memory_latency_bound, b::memory_bandwidth_bound}, tiled(true)},
      {"streaming stores", "results go past the caches, so that their lines are not read first",
       {b::store_bandwidth_bound, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           return !rs.stream && can_stream(r, rs, s.lanes) ? (rs.stream = true) : false;
         });
       }},
      {"fewer blocks of steps", "sums wait in memory less often", {b::store_bandwidth_bound, b::port_pressure, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.k = std::min(size.k, x.k * 2); })},
      {"cheaper polynomials", "one degree less, at most 4 ULP", {b::port_pressure},
       [](schedule& s, const loop_program&) { return s.cheap_math ? false : (s.cheap_math = true); }},
      {"wider blocks of columns", "rows are read less often", {b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.n = std::min(size.n, x.n * 2); })},
      {"another register tile", "other idle lanes and rows, other loads per multiplication", {b::port_pressure, b::dependency_chain, b::front_end_bound},
       reblocked([](blocking& x, const contraction_size& size, int lanes) { next_tile(x, size, lanes); })},
      {"prefetch", "asks for data 64 cache lines ahead", {b::memory_latency_bound, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!row_mode(r, rs) || rs.prefetch > 0) return false;
           rs.prefetch = 1024;
           return true;
         });
       }},
      {"rows together", "what rows share is read once for several, and memory in several places at once", {b::memory_bandwidth_bound, b::memory_latency_bound, b::port_pressure},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           const int more = rows_together(r, rs, rs.together * 2);
           return more > rs.together ? (rs.together = more, true) : false;
         });
       }},
      {"next row", "the last pass over a row asks for the row after it, or no longer does", {b::memory_latency_bound, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!has_next_row(r, rs)) return false;
           rs.next_row = !rs.next_row;
           return true;
         });
       }},
      {"smaller blocks of rows", "the block of rows stays in the second-level cache", {b::memory_latency_bound, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size&, int) { x.m = std::max<int64_t>(x.rows, x.m / 2); })},
      {"larger blocks of rows", "columns are read less often", {b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.m = std::min(size.m, x.m * 2); })},
      {"more blocks of steps", "a panel of columns stays in the first-level cache", {b::memory_latency_bound, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size&, int) { x.k = std::max<int64_t>(64, x.k / 2); })},
      {"one pass less", "means and variances, peaks and sums of exponentials need the data once", {b::too_many_passes, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (rs.merge_passes || !plan_passes(r, r.reduced_mask(), true).merges()) return false;
           return rs.merge_passes = true;
         });
       }},
      {"row buffer", "what several passes need is computed once per row", {b::port_pressure, b::too_many_passes, b::divider_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (rs.keep_rows || !has_expensive_shared_value(r) || row_elements(r) * 4 > (4 << 20)) return false;
           return rs.keep_rows = true;
         });
       }},
      {"recompute instead of a row buffer", "arithmetic instead of stores and loads",
       {b::memory_bandwidth_bound, b::store_bandwidth_bound, b::memory_latency_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!rs.keep_rows || !has_expensive_shared_value(r)) return false;
           rs.keep_rows = false;
           return true;
         });
       }},
      {"more accumulators", "more independent chains in flight", {b::dependency_chain, b::memory_latency_bound}, unrolled(true)},
      {"narrower tile", "the tile's passes stay closer to the core", {b::too_many_passes, b::front_end_bound, b::memory_bandwidth_bound},
       tiled(false)},
      {"less unrolling", "a smaller loop body", {b::front_end_bound, b::call_overhead}, unrolled(false)},
      {"stores through the caches", "the next reader finds the results there", {b::memory_bandwidth_bound, b::memory_latency_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region&) {
           if (!rs.stream) return false;
           rs.stream = false;
           return true;
         });
       }},
      {"half the threads", "less to start and to wait for", {b::thread_overhead, b::load_imbalance},
       [](schedule& s, const loop_program&) {
         if (s.threads < 2) return false;
         s.threads /= 2;
         if (s.threads == 1) std::erase(s.flags, openmp);
         return true;
       }},
      {"separate passes", "shorter loops, at the price of one more pass", {b::port_pressure, b::front_end_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!rs.merge_passes || !plan_passes(r, r.reduced_mask(), true).merges()) return false;
           rs.merge_passes = false;
           return true;
         });
       }},
      {"two registers per vector", "each operation works on twice the lanes", {b::dependency_chain, b::divider_bound},
       [](schedule& s, const loop_program&) {
         if (s.lanes >= 16) return false;
         s.lanes *= 2;
         return true;
       }},
      {"smaller code", "-O2 instead of -O3", {b::front_end_bound, b::call_overhead},
       [](schedule& s, const loop_program&) { return set_flag(s, "-O2", "-O3"); }},
      {"another vector axis", "lanes along another dimension", {b::strided_access, b::not_vectorized, b::scalar_tail},
       next_vector_axis},
  };
  return list;
}

search_space<schedule> processor_space(const loop_program& program, const builtin_options& options, const std::string& title) {
  search_space<schedule> space;
  space.moves = moves();
  space.start = starting_schedule(program, options.machine, options.threads);
  const bool gcc = installed(options.compilers, "gcc"), clang = installed(options.compilers, "clang");
  if (!clang) std::erase_if(space.moves, [](const auto& m) { return m.name == "clang"; });
  if (!gcc && clang) {
    space.start = starting_schedule(program, options.machine, 1);
    use_clang(space.start);
  }
  space.reason = "Starting point from cache sizes and vector width: " + std::to_string(program.regions.size()) +
                 (program.regions.size() == 1 ? " fused loop nest" : " loop nests") + ", passes vectorised along the contiguous axis.";
  space.safer_means = "exact divisions, plain stores, separate passes";
  space.emit = [&program, title](const schedule& s) {
    auto source = emit_source(program, s, title);
    candidate c;
    c.source = std::move(source.text);
    c.compiler = s.compiler;
    c.flags = s.flags;
    return scheduled_candidate{std::move(c), std::move(source.program)};
  };
  space.fits = [&program, start = space.start, compilers = options.compilers](schedule& known) {
    if (!installed(compilers, known.compiler)) return false;
    if (known.regions.size() != program.regions.size() || known.threads != start.threads || known.lanes != start.lanes) return false;
    for (size_t i = 0; i < known.regions.size(); ++i) {
      auto& of = known.regions[i]; // a store is a file: what stands in it may be anything
      if (of.unroll < 1 || of.unroll > most_unrolled || of.together < 1 || of.together > most_rows_together || of.tile < 1 || of.tile > widest_tile || of.prefetch < 0 || of.prefetch > farthest_prefetch) return false;
      if (const auto& r = program.regions[i]; r.anchor) {
        if (of.vector_axis != r.anchor->n.back()) return false;
        of.block = fitted(of.block, r, known.lanes);
        continue;
      }
      const auto axes = vector_axes(program.regions[i], known.lanes);
      if (std::find(axes.begin(), axes.end(), of.vector_axis) == axes.end()) return false;
    }
    return true;
  };
  space.safer = [start = space.start, clang](int step) -> std::optional<schedule> {
    if (step > 2 || (step == 2 && !clang)) return std::nullopt;
    schedule s = start;
    s.reciprocals = s.cheap_math = false;
    for (auto& r : s.regions) {
      r.stream = r.keep_rows = r.merge_passes = false;
      r.unroll = step == 0 ? r.unroll : 1;
    }
    if (step >= 1) std::replace(s.flags.begin(), s.flags.end(), std::string("-O3"), std::string("-O2"));
    if (step == 2) use_clang(s);
    return s;
  };
  return space;
}

} // namespace pragma::synthesis
