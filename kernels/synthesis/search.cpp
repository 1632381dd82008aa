#include "kernels/synthesis/search.hpp"

#include "base/text.hpp"
#include "kernels/synthesis/emit.hpp"
#include "kernels/synthesis/passes.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using b = bottleneck;
constexpr int most_unrolled = 16, widest_tile = 64, farthest_prefetch = 1 << 14; ///< steps, vectors, elements
constexpr int most_pairs = 12;       ///< of moves, in one run
constexpr int draws_of_random = 200; ///< without a new schedule: the space is exhausted

bool row_mode(const region& r, const region_schedule& s) {
  return s.vector_axis >= 0 && (r.reduced_mask() == 0 || r.axes[static_cast<size_t>(s.vector_axis)].reduced);
}

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

/// Applies `change` to the blocks of every contraction.
std::function<bool(schedule&, const loop_program&)> reblocked(std::function<void(blocking&, const contraction_size&, int lanes)> change) {
  return [change](schedule& s, const loop_program& p) {
    bool changed = false;
    for (size_t i = 0; i < s.regions.size() && i < p.regions.size(); ++i) {
      if (!p.regions[i].anchor) continue;
      auto next = s.regions[i].block;
      change(next, size_of_contraction(p.regions[i]), s.lanes);
      next = fitted(next, p.regions[i], s.lanes);
      changed = changed || json(next) != json(s.regions[i].block);
      s.regions[i].block = next;
    }
    return changed;
  };
}

/// The next of the register tiles that compilers keep in registers.
void next_tile(blocking& block, int lanes) {
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

bool set_flag(schedule& s, const std::string& flag, const std::string& instead_of = "") {
  if (std::find(s.flags.begin(), s.flags.end(), flag) != s.flags.end()) return false;
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

std::string title_of(bottleneck what) {
  auto name = json(what).get<std::string>();
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

} // namespace

const std::vector<move>& moves() {
  static const std::vector<move> list{
      {"streaming stores", "results go past the caches, so that their lines are not read first",
       {b::store_bandwidth_bound, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           return !rs.stream && can_stream(r, rs, s.lanes) ? (rs.stream = true) : false;
         });
       }},
      {"fewer blocks of steps", "sums wait in memory less often", {b::store_bandwidth_bound, b::port_pressure, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.k = std::min(size.k, x.k * 2); })},
      {"more blocks of steps", "a panel of columns stays in the first-level cache", {b::memory_latency_bound, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size&, int) { x.k = std::max<int64_t>(64, x.k / 2); })},
      {"another register tile", "other idle lanes and rows, other loads per multiplication", {b::port_pressure, b::dependency_chain, b::front_end_bound},
       reblocked([](blocking& x, const contraction_size&, int lanes) { next_tile(x, lanes); })},
      {"smaller blocks of rows", "the block of rows stays in the second-level cache", {b::memory_latency_bound, b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size&, int) { x.m = std::max<int64_t>(x.rows, x.m / 2); })},
      {"larger blocks of rows", "columns are read less often", {b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.m = std::min(size.m, x.m * 2); })},
      {"wider blocks of columns", "rows are read less often", {b::memory_bandwidth_bound},
       reblocked([](blocking& x, const contraction_size& size, int) { x.n = std::min(size.n, x.n * 2); })},
      {"one pass less", "means and variances, block by block, need the data once", {b::too_many_passes, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (rs.merge_passes || plan_passes(r, r.reduced_mask(), true).moments.empty()) return false;
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
      {"wider tile", "more columns per step: longer runs of contiguous memory",
       {b::strided_access, b::dependency_chain, b::memory_latency_bound, b::memory_bandwidth_bound}, tiled(true)},
      {"narrower tile", "the tile's passes stay closer to the core", {b::too_many_passes, b::front_end_bound, b::memory_bandwidth_bound},
       tiled(false)},
      {"another vector axis", "lanes along another dimension", {b::strided_access, b::not_vectorized, b::scalar_tail, b::dependency_chain},
       next_vector_axis},
      {"cheaper polynomials", "one degree less, at most 4 ULP", {b::port_pressure},
       [](schedule& s, const loop_program&) { return s.cheap_math ? false : (s.cheap_math = true); }},
      {"less unrolling", "a smaller loop body", {b::front_end_bound, b::call_overhead}, unrolled(false)},
      {"prefetch", "asks for data 64 cache lines ahead", {b::memory_latency_bound, b::memory_bandwidth_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!row_mode(r, rs) || rs.prefetch > 0) return false;
           rs.prefetch = 1024;
           return true;
         });
       }},
      {"stores through the caches", "the next reader finds the results there", {b::memory_bandwidth_bound, b::memory_latency_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region&) {
           if (!rs.stream) return false;
           rs.stream = false;
           return true;
         });
       }},
      {"clang", "another compiler's scheduling and register allocation",
       {b::not_vectorized, b::port_pressure, b::front_end_bound, b::dependency_chain, b::scalar_tail},
       [](schedule& s, const loop_program&) {
         if (s.compiler == "clang") return false;
         s.compiler = "clang";
         return true;
       }},
      {"half the threads", "less to start and to wait for", {b::thread_overhead, b::load_imbalance},
       [](schedule& s, const loop_program&) {
         if (s.threads < 2) return false;
         s.threads /= 2;
         if (s.threads == 1) s.flags.erase(std::remove(s.flags.begin(), s.flags.end(), "-fopenmp"), s.flags.end());
         return true;
       }},
      {"separate passes", "shorter loops, at the price of one more pass", {b::port_pressure, b::front_end_bound},
       [](schedule& s, const loop_program& p) {
         return each_region(s, p, [&](region_schedule& rs, const region& r) {
           if (!rs.merge_passes || plan_passes(r, r.reduced_mask(), true).moments.empty()) return false;
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
  };
  return list;
}

schedule_search::schedule_search(const loop_program& program, const builtin_options& options, std::string title)
    : program_(program), options_(options), title_(std::move(title)),
      start_(starting_schedule(program, options.machine, options.threads)), random_(options.seed * 0x9e3779b97f4a7c15ull + 1) {}

std::optional<schedule> schedule_search::known_that_fits() const {
  if (options_.known_schedule.empty()) return std::nullopt;
  const auto parsed = parse_json(options_.known_schedule, "a known schedule");
  if (!parsed) return std::nullopt;
  auto known = from_json_value<schedule>(*parsed, "a known schedule");
  if (!known || known->regions.size() != program_.regions.size() || known->threads != start_.threads || known->lanes != start_.lanes) return std::nullopt;
  for (size_t i = 0; i < known->regions.size(); ++i) {
    const auto& of = known->regions[i]; // a store is a file: what stands in it may be anything
    if (of.unroll < 1 || of.unroll > most_unrolled || of.tile < 1 || of.tile > widest_tile || of.prefetch < 0 || of.prefetch > farthest_prefetch)
      return std::nullopt;
    if (const auto& r = program_.regions[i]; r.anchor) {
      if (known->regions[i].vector_axis != r.anchor->n.back()) return std::nullopt;
      known->regions[i].block = fitted(known->regions[i].block, r, known->lanes);
      continue;
    }
    const auto axes = vector_axes(program_.regions[i], known->lanes);
    if (std::find(axes.begin(), axes.end(), known->regions[i].vector_axis) == axes.end()) return std::nullopt;
  }
  return *known;
}

std::optional<candidate> schedule_search::offer(const schedule& s, const std::string& rationale) {
  candidate c;
  c.source = emit_source(program_, s, title_);
  c.compiler = s.compiler;
  c.flags = s.flags;
  c.origin = "builtin";
  c.rationale = rationale;
  c.schedule = json(s).dump();
  // Sources carry their schedule in a comment: what counts is whether the code differs.
  auto code = c.source;
  if (const auto from = code.find("// Schedule:"); from != std::string::npos)
    code.erase(from, code.find("// Written by", from) - from);
  std::string key = c.compiler + "|" + join(c.flags, " ") + "|" + code;
  if (!given_.insert(short_hash(key)).second) return std::nullopt;
  offered_[c.id()] = s;
  return c;
}

std::optional<candidate> schedule_search::next(const std::optional<attempt_feedback>& last) {
  if (options_.search == search_mode::random) return anywhere();
  if (!begun_) {
    begun_ = true;
    if (const auto known = known_that_fits()) return offer(*known, "Starting point: the schedule that won on " + options_.known_from + ".");
    return offer(start_, "Starting point from cache sizes and vector width: " + std::to_string(program_.regions.size()) +
                             (program_.regions.size() == 1 ? " fused loop nest" : " loop nests") + ", passes vectorised along the contiguous axis.");
  }
  if (last) learn(*last);
  if (!best_ && !last) return neighbour(start_, {}); // beside the first, in a batch
  if (!best_) {
    // Nothing has passed yet: give up what could have been too clever, then the compiler.
    if (auto c = offer(start_, "The known schedule failed: starting point from cache sizes and vector width.")) return c;
    while (safer_ < 3) {
      schedule s = start_;
      s.reciprocals = s.cheap_math = false;
      for (auto& r : s.regions) {
        r.stream = r.keep_rows = r.merge_passes = false;
        r.unroll = safer_ == 0 ? r.unroll : 1;
      }
      if (safer_ >= 1) std::replace(s.flags.begin(), s.flags.end(), std::string("-O3"), std::string("-O2"));
      if (safer_ == 2) s.compiler = "clang";
      ++safer_;
      if (auto c = offer(s, "The attempt before failed (" + last->failure + "): exact divisions, plain stores, separate passes."))
        return c;
    }
    return std::nullopt;
  }
  return neighbour(*best_, last && last->passed && last->new_best ? last->findings : best_findings_);
}

void schedule_search::learn(const attempt_feedback& about) {
  const auto known = offered_.find(about.candidate);
  if (known == offered_.end() || !about.passed || (!about.new_best && best_)) return;
  best_ = known->second;
  best_findings_ = about.findings;
}

/// Below `limit`. A generator of our own (Knuth's MMIX constants): equal on every platform.
size_t schedule_search::drawn(size_t limit) {
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
  return (random_ >> 33) % limit;
}

std::optional<candidate> schedule_search::anywhere() {
  for (int attempt = 0; attempt < draws_of_random; ++attempt) {
    schedule s = start_;
    for (size_t step = 0, steps = drawn(2 * moves().size()); step < steps; ++step) moves()[drawn(moves().size())].apply(s, program_);
    if (auto c = offer(s, "Drawn at random.")) return c;
  }
  return std::nullopt;
}

std::optional<candidate> schedule_search::neighbour(const schedule& from, const std::vector<finding>& findings) {
  struct option { const move* m; const finding* f; };
  std::vector<option> options;
  if (options_.search == search_mode::findings) {
    std::set<const move*> listed;
    for (const auto& f : findings)
      for (const auto& m : moves())
        if (std::find(m.answers.begin(), m.answers.end(), f.what) != m.answers.end() && listed.insert(&m).second)
          options.push_back({&m, &f});
    for (const auto& m : moves())
      if (listed.insert(&m).second) options.push_back({&m, nullptr});
  } else {
    for (const auto& m : moves()) options.push_back({&m, nullptr});
    for (size_t i = options.size(); i > 1; --i) std::swap(options[i - 1], options[drawn(i)]); // Fisher-Yates
  }
  for (const auto& [m, f] : options) {
    schedule s = from;
    if (!m->apply(s, program_)) continue;
    const std::string because = f ? title_of(f->what) + " (confidence " + format_number(f->confidence, 2) + "): " : std::string();
    if (auto c = offer(s, because + m->name + ": " + m->why + ".")) return c;
  }
  // One step from it is all tried: two steps, as the single ones were ordered.
  for (size_t i = 0; i < options.size() && pairs_ < most_pairs; ++i)
    for (size_t j = i + 1; j < options.size() && pairs_ < most_pairs; ++j) {
      schedule s = from;
      if (!options[i].m->apply(s, program_) || !options[j].m->apply(s, program_)) continue;
      if (auto c = offer(s, std::string(options[i].m->name) + " and " + options[j].m->name + ": each alone was tried.")) {
        ++pairs_;
        return c;
      }
    }
  return std::nullopt;
}

} // namespace pragma::synthesis
