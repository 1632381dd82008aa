#include "synthesis/loops/anchors.hpp"
#include "synthesis/schedule/passes.hpp"
#include "synthesis/schedule/threads.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pragma::synthesis {

cache_sizes::cache_sizes(const machine_limits& limits) {
  if (limits.cache_bytes.size() > 0 && limits.cache_bytes[0] > 0) l1 = limits.cache_bytes[0];
  if (limits.cache_bytes.size() > 1 && limits.cache_bytes[1] > 0) l2 = limits.cache_bytes[1];
  if (limits.cache_bytes.size() > 2 && limits.cache_bytes[2] > 0) l3 = limits.cache_bytes[2];
  const bool slow_l3 = limits.copy_gbs.size() > 3 && limits.copy_gbs[2] < 2 * limits.copy_gbs[3];
  kept_writes = slow_l3 ? std::min(l3, 4 * l2) : l3;
}

namespace {

double access_elements(const region& r, const index_form& f) {
  double n = 1;
  for (const auto& t : f.terms) n *= static_cast<double>(r.axes[static_cast<size_t>(t.first)].extent);
  return n;
}

int64_t touched(const region& r, const loop_program& p, bool written, bool read) {
  std::map<int, double> most; // of a buffer: what its widest access touches
  const auto count = [&](int buffer, const index_form& f) {
    const auto& b = p.buffers[static_cast<size_t>(buffer)];
    auto& bytes = most[buffer];
    bytes = std::max(bytes, std::min(access_elements(r, f), static_cast<double>(b.elements)) * static_cast<double>(size_of(b.dtype)));
  };
  if (written)
    for (const auto& s : r.stores) count(s.buffer, s.at);
  if (read)
    for (const auto& e : r.exprs)
      if (e.kind == expr_kind::load) count(e.buffer, e.at);
  double bytes = 0;
  for (const auto& [buffer, touched] : most) bytes += touched;
  return static_cast<int64_t>(bytes);
}

/// How well lanes are filled and loads are contiguous along `a`, in [0, 1].
double vector_score(const region& r, int a, int lanes) {
  const auto& x = r.axes[static_cast<size_t>(a)];
  double weight = 0, score = 0;
  const auto access = [&](const index_form& f) {
    const double w = access_elements(r, f);
    const int64_t c = std::abs(f.coefficient(a));
    weight += w;
    score += w * (c <= 1 ? 1.0 : c <= 4 ? 0.5 : 0.15);
  };
  for (const auto& s : r.stores) access(s.at);
  for (const auto& e : r.exprs)
    if (e.kind == expr_kind::load && e.args.empty()) access(e.at);
  if (weight > 0) score /= weight;
  const double n = static_cast<double>(x.extent), w = lanes;
  score *= n / (std::ceil(n / w) * w);
  if (x.reduced) score *= n / (n + 2 * w); // each row ends with a combination of its lanes
  return score;
}

} // namespace

int64_t bytes_touched(const region& r, const loop_program& program) { return touched(r, program, true, true); }
int64_t bytes_written(const region& r, const loop_program& program) { return touched(r, program, true, false); }

int64_t row_elements(const region& r) {
  int64_t n = 1;
  for (const auto& a : r.axes)
    if (a.reduced) n *= a.extent;
  return n;
}

std::vector<int> vector_axes(const region& r, int lanes) {
  std::vector<std::pair<double, int>> found;
  for (size_t a = 0; a < r.axes.size(); ++a) {
    if (r.axes[a].window || r.axes[a].contracted || static_cast<int>(a) == r.item) continue;
    if (r.scan_axis == static_cast<int>(a) || !r.axes[a].reduced || r.scan_axis < 0)
      found.push_back({vector_score(r, static_cast<int>(a), lanes), static_cast<int>(a)});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<int> axes;
  for (const auto& [score, a] : found) axes.push_back(a);
  return axes;
}

bool has_expensive_shared_value(const region& r) {
  const auto mask = r.reduced_mask();
  return mask != 0 && !values_worth_keeping(r, plan_passes(r, mask, false), mask).empty();
}

namespace {

/// Rows end in sums. Of rows that are stored, requests slowed softmax (5%), left LayerNorm as it was and helped log_softmax of longer rows (9%): the search may ask (decisions/0039).
bool ends_in_sums(const region& r, const region_schedule& s) { return plan_passes(r, r.reduced_mask(), s.merge_passes).stores.empty(); }

/// Elements: 2 KiB, half a page. Farther was slower by up to a fifth, without requests rows of 32000 took 1.4 times as long (decisions/0042).
constexpr int64_t followed_ahead = 512;

bool follows_peak(const region& r, const region_schedule& s) {
  return s.vector_axis >= 0 && r.axes[static_cast<size_t>(s.vector_axis)].reduced && plan_passes(r, r.reduced_mask(), s.merge_passes).followed.peak >= 0;
}

} // namespace

bool row_mode(const region& r, const region_schedule& s) {
  return s.vector_axis >= 0 && (r.reduced_mask() == 0 || r.axes[static_cast<size_t>(s.vector_axis)].reduced);
}

namespace {

/// What the elements of a row are made of.
struct row_factors {
  bool of_row = false, shared = false; ///< loads along the vector axis: another one for each row, the same for all rows
  bool others = false;                 ///< values of the whole row, scans: they would have to be known of several rows at once
  std::set<int> seen;
};
void find_factors(const region& r, int e, int row, int vector, row_factors& found) {
  const auto& x = r.exprs[static_cast<size_t>(e)];
  if (x.kind == expr_kind::constant || !found.seen.insert(e).second) return;
  if ((x.kind != expr_kind::load && x.kind != expr_kind::op) || !(x.axes & (1u << vector)) || (x.kind == expr_kind::load && !x.args.empty())) found.others = true;
  else if (x.kind == expr_kind::load) (x.at.coefficient(row) != 0 ? found.of_row : found.shared) = true;
  else
    for (int a : x.args) find_factors(r, a, row, vector, found);
}

} // namespace

int rows_together(const region& r, const region_schedule& s, int most) {
  if (r.anchor || r.host >= 0 || r.item >= 0 || r.scan_axis >= 0 || r.bounded_axis >= 0 || r.has_window() || r.scatters() || s.vector_axis < 0 || s.keep_rows) return 1;
  if (r.reduced_mask() != 1u << s.vector_axis) return 1;
  const auto plan = plan_passes(r, r.reduced_mask(), s.merge_passes);
  int row = -1;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (!r.axes[a].reduced) row = static_cast<int>(a);
  if (row < 0 || plan.passes != 1 || plan.merges() || !plan.stores.empty()) return 1;
  row_factors factors;
  for (int e : plan.reduces.at(1)) {
    if (r.exprs[static_cast<size_t>(e)].op != operation::sum) return 1;
    find_factors(r, r.exprs[static_cast<size_t>(e)].args[0], row, s.vector_axis, factors);
  }
  if (factors.others || !factors.of_row || !factors.shared) return 1;
  int together = std::bit_floor(static_cast<unsigned>(std::clamp(most, 1, most_rows_together)));
  while (r.axes[static_cast<size_t>(row)].extent % together != 0) together /= 2;
  return together;
}

namespace {

/// So many rows at once, at most, that what goes together can still be shared out evenly.
int rows_for_threads(const region& r, int most, int threads) {
  int64_t rows = 1;
  for (const auto& a : r.axes) rows *= a.reduced ? 1 : a.extent;
  while (most > 1 && rows / most < 8 * threads && rows / most % threads != 0) most /= 2;
  return most;
}

} // namespace

bool has_next_row(const region& r, const region_schedule& s) {
  if (r.anchor || s.vector_axis < 0 || !r.axes[static_cast<size_t>(s.vector_axis)].reduced) return false;
  const bool rows = std::any_of(r.axes.begin(), r.axes.end(), [](const axis& a) { return !a.reduced && a.extent > 1; });
  const auto plan = plan_passes(r, r.reduced_mask(), s.merge_passes);
  return rows && plan.passes > 1 && plan.followed.peak < 0;
}

bool can_stream(const region& r, const region_schedule& s, int lanes) {
  if (r.scatters()) return false;
  for (const auto& st : r.stores) {
    bool aligned = s.vector_axis >= 0 && st.at.coefficient(s.vector_axis) == 1 && st.at.offset % lanes == 0;
    for (const auto& [a, c] : st.at.terms) aligned = aligned && (a == s.vector_axis || c % lanes == 0);
    if (aligned) return true;
  }
  return false;
}

bool reads_rows_in_place(const region& r, dtype left) {
  if (!r.anchor || !r.by_row_blocks || left != dtype::float32) return false;
  return r.anchor->a_at.coefficient(r.anchor->k) == 1 && r.anchor->a_at.coefficient(r.anchor->m[0]) > 0 && !triangle_of(r);
}

bool whole_lines(const region& r, const region_schedule& s, int lanes) {
  constexpr int64_t line = 64 / 4; // float32
  if (!r.anchor || r.by_row_blocks || r.stores.size() != 1 || r.anchor->op != operation::matmul || r.anchor->n.size() != 1) return false;
  const auto& out = r.stores[0];
  const int64_t columns = int64_t{s.block.vectors} * lanes;
  bool whole = out.at.coefficient(r.anchor->n[0]) == 1 && out.at.dynamic < 0 && columns % line == 0 && size_of_contraction(r).n % columns == 0 && out.at.offset % line == 0;
  for (const auto& [a, c] : out.at.terms) whole = whole && (a == r.anchor->n[0] || c % line == 0);
  return whole;
}

contraction_size size_of_contraction(const region& r) {
  const auto& c = *r.anchor;
  contraction_size s;
  for (int a : c.m) s.m *= r.axes[static_cast<size_t>(a)].extent;
  for (int a : c.n) s.n *= r.axes[static_cast<size_t>(a)].extent;
  s.channels = r.axes[static_cast<size_t>(c.k)].extent;
  for (const auto& d : c.dims) {
    const int64_t phases = c.transposed ? std::min(d.stride, d.out) : 1;
    s.taps *= (d.kernel + phases - 1) / phases;
    s.n = c.strided_store() ? s.n / phases : s.n;
  }
  if (c.recurrent()) s.n *= gates_of(c.op);
  s.n = std::max<int64_t>(s.n, 1);
  s.k = s.channels * s.taps;
  return s;
}

namespace {

dtype anchor_type(const region& r) {
  for (const auto& e : r.exprs)
    if (e.kind == expr_kind::anchor) return e.dtype;
  return dtype::float32;
}

/// `total` in equal blocks of at most `limit`, each a multiple of `step`.
int64_t even_blocks(int64_t total, int64_t limit, int64_t step) {
  const int64_t blocks = std::max<int64_t>(1, (total + limit - 1) / limit);
  return rounded_up((total + blocks - 1) / blocks, step);
}

constexpr int64_t most_exact_steps = 1024; ///< of int8, whose sum float32 still has exactly, where words are not to be had
constexpr int64_t few_word_rows = 128; ///< of a product by words
constexpr int64_t enough_columns = 1024; ///< of a block: what reading all rows once more costs is nothing beside the work

/// Analytical blocks (after Goto and van de Geijn: Anatomy of high-performance matrix multiplication): a panel of b stays
/// in the first-level cache, a block of a in the second, a block of b in the third.
/// `threads`: of those that share out the columns; 1 where they have batches to share, or none.
/// `in_place`: rows are read as they lie in memory, so that what is left of them is a tile of its own, without idle rows.
/// Of a product by words: a panel of rows and one of columns share the first level, all steps of a block of rows have half of the second (decisions/0050).
blocking word_blocks(const region& r, const cache_sizes& cache, int lanes, int threads, dtype words, bool tiles) {
  const auto size = size_of_contraction(r);
  const int64_t bytes = size_of(words);
  blocking b;
  b.rows = tiles ? (size.m > 16 ? 32 : 16) : static_cast<int>(even_blocks(size.m, lanes == 16 ? 12 : 4, 1));
  b.vectors = size.n > lanes ? 2 : 1;
  const int64_t columns = int64_t{b.vectors} * lanes;
  // Steps of a column side by side, and few rows: columns are read once or so, and sums that wait would cost more than what the first level brings.
  const bool side_by_side = r.anchor->b_at.coefficient(r.anchor->n[0]) == 1, few_rows = size.m <= few_word_rows && !side_by_side;
  const int64_t steps = few_rows ? cache.l2 / 4 / (columns * bytes) : cache.l1 * 2 / 3 / ((b.rows + columns) * bytes);
  b.k = even_blocks(size.k, std::max<int64_t>(64, steps), 64);
  b.m = even_blocks(size.m, std::clamp<int64_t>(cache.l2 / 2 / (size.k * bytes), few_word_rows, 512), b.rows);
  // Columns side by side: a step of many is read at once, since each lies in another page.
  const int64_t panels = !side_by_side ? 1 : size.m <= few_word_rows ? 16 : 8;
  b.n = columns * std::min(panels, std::max<int64_t>(1, size.n / (columns * threads)));
  return fitted(b, r, lanes);
}

blocking starting_blocks(const region& r, const cache_sizes& cache, int lanes, int threads, bool in_place) {
  const auto size = size_of_contraction(r);
  const auto columns_of_a_thread = [&](int64_t tile) { return tile * ((size.n + tile * threads - 1) / (tile * threads)); };
  blocking b;
  // The tile with the fewest idle lanes and rows, weighed by how fast each runs (measured, GCC 12).
  struct tile { int rows, vectors; double speed; };
  const std::vector<tile> tiles = lanes == 16 ? std::vector<tile>{{14, 2, 1}, {8, 3, 0.98}, {12, 2, 0.98}, {10, 2, 0.96}, {6, 4, 0.94}, {12, 1, 0.8}}
                                              : std::vector<tile>{{6, 2, 1}, {4, 3, 0.99}, {5, 2, 0.97}, {8, 1, 0.9}, {12, 1, 0.85}};
  double best = 0;
  for (const auto& t : tiles) {
    const double used = static_cast<double>(size.m * size.n) /
                        static_cast<double>((in_place ? size.m : rounded_up(size.m, t.rows)) * threads * columns_of_a_thread(int64_t{t.vectors} * lanes));
    if (used * t.speed > best * 1.01) {
      best = used * t.speed;
      b.rows = t.rows;
      b.vectors = t.vectors;
    }
  }
  const int64_t columns = int64_t{b.vectors} * lanes, step = r.anchor->dims.empty() ? 16 : size.taps;
  // A panel of a product's columns may fill the first level: what rows push out of it comes back from the second in time (decisions/0047).
  const bool product = r.anchor->dims.empty() && !r.by_row_blocks;
  b.k = even_blocks(size.k, std::max(step, product ? cache.l1 / 4 / columns * 15 / 16 : cache.l1 / 2 / 4 / columns * 4 / 3), step);
  b.m = even_blocks(size.m, std::max<int64_t>(b.rows, cache.l2 * 5 / 8 / 4 / b.k), b.rows);
  const bool one_block_of_rows = b.m >= size.m, several = b.k < size.k;
  int64_t limit = size.n;
  if (several) {
    // Sums wait in the second level; where rows do not fit there, in the third: all rows are read once more for each block of columns.
    const int64_t near = (one_block_of_rows ? cache.l2 / 4 : cache.l2 / 2) / 4 / size.m;
    const int64_t far = product && !one_block_of_rows ? std::min(enough_columns, cache.l3 / 2 / threads / 4 / size.m) : 0;
    limit = std::min(limit, std::max({columns, near, far}));
  }
  if (!one_block_of_rows) limit = std::min(limit, std::max(columns, (int64_t{4} << 20) / 4 / b.k));
  b.n = even_blocks(columns_of_a_thread(columns), std::max(columns, limit / columns * columns), columns);
  b.whole = rounded_up(size.m, b.rows) * size.k * 4 <= (int64_t{32} << 20);
  return fitted(b, r, lanes);
}

} // namespace

blocking recurrent_tile(const region& r, int lanes, int threads) {
  const auto size = size_of_contraction(r);
  const int64_t gates = gates_together(r.anchor->op, lanes), units = size.n / gates_of(r.anchor->op), registers = lanes == 16 ? 28 : 12, least_vectors = gates == 1 ? 2 : 1;
  blocking b;
  b.rows = static_cast<int>(even_blocks(size.m, std::max<int64_t>(1, registers / (gates * least_vectors)), 1));
  const int64_t of_a_thread = (units + lanes * threads - 1) / (lanes * threads);
  b.vectors = static_cast<int>(std::clamp<int64_t>(registers / (gates * b.rows), 1, std::min<int64_t>(4, of_a_thread)));
  return fitted(b, r, lanes);
}

dtype words_of(const loop_program& program, const region& r, bool tiles) {
  if (!r.anchor || r.anchor->op != operation::matmul || r.by_row_blocks) return dtype::float32;
  const auto a = program.buffers[static_cast<size_t>(r.anchor->a)].dtype, b = program.buffers[static_cast<size_t>(r.anchor->b)].dtype;
  const auto fits = [](dtype x) { return x == dtype::bfloat16 || x == dtype::int8; };
  if (!fits(a) || !fits(b)) return dtype::float32;
  const bool whole_numbers = anchor_type(r) == dtype::int32;
  if (a == dtype::int8 && b == dtype::int8) return whole_numbers ? dtype::int8 : dtype::float32;
  return a == b && !tiles ? dtype::float32 : dtype::bfloat16;
}

blocking fitted(blocking b, const region& r, int lanes) {
  const auto size = size_of_contraction(r);
  const bool product = r.anchor->op == operation::matmul, tiles = product && b.tiles();
  b.rows = tiles ? std::min(b.rows, 32) : std::clamp(b.rows, 1, 16);
  b.vectors = std::clamp(b.vectors, 1, tiles ? 2 : 6);
  const int64_t columns = int64_t{b.vectors} * lanes;
  const bool whole_numbers = product && anchor_type(r) == dtype::int32;
  b.k = std::clamp<int64_t>(b.k, 1, size.k);
  if (whole_numbers) b.k = std::min(b.k, most_exact_steps);
  if (tiles || whole_numbers) b.k = rounded_up(b.k, 64);
  b.m = rounded_up(std::clamp<int64_t>(b.m, 1, size.m), b.rows);
  b.n = rounded_up(std::clamp<int64_t>(b.n, 1, size.n), columns);
  return b;
}

int lanes_of(const machine_limits& limits) {
  if (limits.simd_bits == 128 && limits.cpu.empty()) return 8; // nothing was measured
  return limits.simd_bits >= 512 ? 16 : limits.simd_bits > 0 && limits.simd_bits < 256 ? 4 : 8;
}

namespace {

/// One thread for regions with too little to do, and for the program where that is all of them.
void threads_for_work(const loop_program& program, schedule& s) {
  std::vector<double> work;
  for (const auto& r : program.regions) work.push_back(work_of(r));
  for (size_t i = 0; i < work.size(); ++i) // what runs in a region's batch loop is shared out with it
    if (const int host = program.regions[i].host; host >= 0) work[static_cast<size_t>(host)] += work[i];
  bool alone = true;
  for (size_t i = 0; i < work.size(); ++i) {
    s.regions[i].one_thread = work[i] < least_shared_work;
    alone = alone && (s.regions[i].one_thread || program.regions[i].host >= 0);
  }
  if (!alone) return;
  for (auto& r : s.regions) r.one_thread = false;
  s.threads = 1;
  std::erase(s.flags, "-fopenmp");
}

} // namespace

schedule starting_schedule(const loop_program& program, const machine_limits& limits, int threads) {
  const cache_sizes cache(limits);
  schedule s;
  s.threads = std::max(1, threads);
  s.lanes = lanes_of(limits);
  s.flags = {"-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"};
  if (s.lanes == 16) s.flags.push_back("-mprefer-vector-width=512");
  if (s.threads > 1) s.flags.push_back("-fopenmp");
  for (const auto& r : program.regions) {
    region_schedule rs;
    if (r.anchor && r.anchor->recurrent()) {
      rs.vector_axis = r.anchor->n.back();
      rs.block = recurrent_tile(r, s.lanes, s.threads);
      s.regions.push_back(rs);
      continue;
    }
    if (r.anchor) {
      rs.vector_axis = r.anchor->n.back();
      int64_t batch = 1;
      for (int a : r.anchor->batch) batch *= r.axes[static_cast<size_t>(a)].extent;
      const int at = static_cast<int>(s.regions.size());
      const bool hosts = std::any_of(program.regions.begin(), program.regions.end(), [at](const auto& x) { return x.host == at; });
      const bool columns = (r.anchor->dims.empty() || (!hosts && !r.anchor->strided_store())) && batch < 2 * s.threads && (batch == 1 || batch % s.threads != 0);
      const bool tiles = limits.half_gflops > 0 && s.lanes == 16;
      if (const auto words = words_of(program, r, tiles); words != dtype::float32) {
        rs.block = word_blocks(r, cache, s.lanes, columns ? s.threads : 1, words, tiles);
        s.regions.push_back(rs);
        continue;
      }
      rs.block = starting_blocks(r, cache, s.lanes, columns ? s.threads : 1, reads_rows_in_place(r, program.buffers[static_cast<size_t>(r.anchor->a)].dtype));
      // Results that no cache holds: finished rows are gathered in a buffer and leave it line by line.
      const auto& out = r.stores[0];
      rs.stream = bytes_written(r, program) > (whole_lines(r, rs, s.lanes) ? cache.kept_writes : cache.l3) && r.stores.size() == 1 && !r.anchor->strided_store() && size_of_contraction(r).n >= 128 &&
                  program.buffers[static_cast<size_t>(out.buffer)].dtype == dtype::float32 && out.at.coefficient(rs.vector_axis) == 1;
      if (rs.stream && !whole_lines(r, rs, s.lanes)) { // rows are gathered first
        const auto size = size_of_contraction(r);
        rs.block.m = std::min(rs.block.m, rounded_up(120, rs.block.rows));
        rs.block.n = even_blocks(size.n, std::min<int64_t>(rs.block.n, 256), int64_t{rs.block.vectors} * s.lanes);
      }
      s.regions.push_back(rs);
      continue;
    }
    const auto axes = vector_axes(r, s.lanes);
    rs.vector_axis = axes.empty() ? -1 : axes[0];
    const int64_t row = row_elements(r);
    if (rs.vector_axis >= 0 && !r.axes[static_cast<size_t>(rs.vector_axis)].reduced && r.reduced_mask() != 0) {
      // Column mode: passes over the same tile should find it in the second-level cache.
      const auto plan = plan_passes(r, r.reduced_mask(), false);
      const int64_t vector_bytes = static_cast<int64_t>(s.lanes) * 4;
      rs.tile = 8;
      if (r.has_window()) rs.tile = 4;
      if (plan.passes > 1)
        while (rs.tile > 2 && row * vector_bytes * rs.tile > cache.l2 / 2) rs.tile /= 2;
      if (plan.passes > 1 && row * vector_bytes * 32 <= cache.l2 / 2) rs.tile = 16;
    }
    rs.keep_rows = has_expensive_shared_value(r) && row * 4 <= cache.l2 / 2;
    rs.next_row = r.host < 0 && has_next_row(r, rs) && ends_in_sums(r, rs) && row * 4 <= cache.l2 / 4 && touched(r, program, false, true) > cache.l2;
    if (r.host < 0 && follows_peak(r, rs) && touched(r, program, false, true) > cache.l2) rs.prefetch = followed_ahead;
    rs.together = rows_together(r, rs, rows_for_threads(r, most_rows_together / 2, s.threads));
    const int64_t written = bytes_written(r, program);
    rs.stream = written > cache.l3 / 2 && can_stream(r, rs, s.lanes);
    s.regions.push_back(rs);
  }
  if (s.threads > 1) threads_for_work(program, s);
  return s;
}

} // namespace pragma::synthesis
