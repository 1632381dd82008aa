#include "synthesis/loops/row_blocks.hpp"

#include "synthesis/loops/anchors.hpp"
#include "synthesis/loops/batches.hpp"

#include <algorithm>
#include <limits>

namespace pragma::synthesis {

namespace {

constexpr int64_t most_block_elements = 64 << 10;   ///< of what lies between two regions: 256 KiB, a part of any second-level cache
constexpr int64_t most_in_few_rows = 1 << 20;       ///< ... where that is not the least number of rows: 4 MiB in the third level, and not all rows in memory
constexpr int64_t most_packed_elements = 1 << 20;   ///< of an operand that is packed once for all blocks: 4 MiB
constexpr int64_t least_rows = 16, usual_rows = 64; ///< of a block: packing pays, and a diagonal is followed closely
constexpr size_t most_axes = 30;                    ///< they are bits of expr::axes

int64_t extent(const region& r, int a) { return r.axes[static_cast<size_t>(a)].extent; }

bool is_product(const region& r) {
  return r.anchor && r.anchor->op == operation::matmul && r.anchor->m.size() == 1 && r.anchor->n.size() == 1 && r.stores.size() == 1 && r.host < 0 &&
         std::none_of(r.exprs.begin(), r.exprs.end(), [](const expr& e) { return e.kind == expr_kind::anchor && e.dtype == dtype::int32; });
}

/// Is f, over the batch, the rows and this last axis, the place in a tensor that they walk in order?
bool walks_in_order(const region& r, const index_form& f, int last) {
  auto axes = r.anchor->batch;
  axes.push_back(r.anchor->m[0]);
  axes.push_back(last);
  int64_t step = 1;
  size_t used = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t c = f.coefficient(axes[i]), n = extent(r, axes[i]);
    if (n > 1 && c != step) return false;
    used += c != 0;
    step *= n;
  }
  return used == f.terms.size() && f.offset == 0 && f.dynamic < 0;
}

/// Rows of a block: all blocks are equal. 0: there is no good number.
int64_t rows_of_block(int64_t rows, int64_t columns) {
  const int64_t most = std::max(most_block_elements / columns, std::min(least_rows, most_in_few_rows / columns));
  int64_t best = 0;
  for (int64_t d = 1; d <= std::min(rows, most); ++d)
    if (rows % d == 0 && (d <= usual_rows || best < least_rows)) best = d;
  return best >= std::min(rows, least_rows) ? best : 0;
}

/// The rows of a product in blocks, which are the last axis of its batch.
void split_rows(region& r, int64_t rows) {
  auto& c = *r.anchor;
  const int m = c.m[0], blocks = static_cast<int>(r.axes.size());
  r.axes.push_back(axis{});
  r.axes.back().extent = extent(r, m) / rows;
  r.axes[static_cast<size_t>(m)].extent = rows;
  const auto split = [&](index_form& f) {
    if (const int64_t k = f.coefficient(m); k != 0) f.terms.push_back({blocks, k * rows});
  };
  for (auto& s : r.stores) split(s.at);
  for (auto& e : r.exprs) {
    split(e.at);
    if (e.axes & (1u << m)) e.axes |= 1u << blocks;
  }
  split(c.a_at);
  split(c.b_at);
  c.batch.push_back(blocks);
  r.by_row_blocks = true;
}

/// What is known of a value at a column that is masked out.
enum class beyond { unknown, same, lowest, zero }; // same: as in every other column, since it holds for a row

/// Does a region of rows make zeros of the lowest values (-inf) in `scores`, as softmax does, with no other trace of them? Then weights beyond
/// the bound are zeros, and so is what the columns there add to a sum.
bool leaves_zeros(const region& r, int scores, int columns) {
  std::vector<beyond> known(r.exprs.size(), beyond::unknown);
  const auto live = live_exprs(r);
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const auto& e = r.exprs[i];
    if (!live[i]) continue;
    const auto arg = [&](size_t n) { return known[static_cast<size_t>(e.args[n])]; };
    auto& x = known[i];
    if (e.kind == expr_kind::load && e.buffer == scores) x = e.at.coefficient(columns) == 1 ? beyond::lowest : beyond::unknown;
    else if (e.kind == expr_kind::constant) x = beyond::same;
    else if (e.kind == expr_kind::reduce) x = ((e.op == operation::max || e.op == operation::peak) && arg(0) == beyond::lowest) || (e.op == operation::sum && arg(0) == beyond::zero) ? beyond::same : beyond::unknown;
    else if (e.op == operation::sub && arg(0) == beyond::lowest && arg(1) == beyond::same) x = beyond::lowest;
    else if ((e.op == operation::exp || e.op == operation::exp_nonpositive) && arg(0) == beyond::lowest) x = beyond::zero;
    else if (e.op == operation::div && arg(0) == beyond::zero && arg(1) == beyond::same) x = beyond::zero;
    if (x == beyond::unknown) return false;
  }
  return std::all_of(r.stores.begin(), r.stores.end(), [&](const auto& s) { return known[static_cast<size_t>(s.value)] == beyond::zero; });
}

/// The one reduced axis of a region, -1 where there are more or none.
int reduced_axis(const region& r) {
  int found = -1;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (r.axes[a].reduced) found = found == -1 ? static_cast<int>(a) : -2;
  return std::max(found, -1);
}

struct chain {
  region first, last;
  std::vector<region> before, between;
  std::set<int> local;
  std::optional<triangle> kept; ///< a mask leaves out all beyond
  size_t length = 0; ///< regions of the program, from `first` on
};

/// Is its left factor what lies between, row by row, and nothing else of it?
bool takes_rows(const region& r, const std::set<int>& local) {
  if (!is_product(r) || r.axes.size() >= most_axes || !local.count(r.anchor->a) || local.count(r.anchor->b)) return false;
  const auto live = live_exprs(r);
  for (size_t i = 0; i < r.exprs.size(); ++i)
    if (live[i] && r.exprs[i].kind == expr_kind::load && local.count(r.exprs[i].buffer)) return false;
  return walks_in_order(r, r.anchor->a_at, r.anchor->k) && r.anchor->b_at.coefficient(r.anchor->m[0]) == 0;
}

std::optional<chain> chain_from(const loop_program& p, size_t at) {
  chain c;
  c.first = p.regions[at];
  const auto& head = *c.first.anchor;
  const auto& out = c.first.stores[0];
  if (p.buffers[static_cast<size_t>(out.buffer)].kind != buffer_kind::scratch || !walks_in_order(c.first, out.at, head.n[0])) return std::nullopt;
  if (head.b_at.coefficient(head.m[0]) != 0 || c.first.axes.size() >= most_axes || head.a == out.buffer || head.b == out.buffer) return std::nullopt;
  const int64_t m = extent(c.first, head.m[0]), n = extent(c.first, head.n[0]);
  const int64_t rows = rows_of_block(m, n), elements = p.buffers[static_cast<size_t>(out.buffer)].elements;
  if (rows == 0 || n * extent(c.first, head.k) > most_packed_elements) return std::nullopt;
  if (rows == m && rows < least_rows) return std::nullopt; // one block of few rows (decode): columns that are packed as a whole before they are read would go to memory and back, and nothing reads them again
  const int64_t items = elements / (rows * n);
  c.local = {out.buffer};
  for (size_t i = at + 1; i < p.regions.size(); ++i) {
    const auto reads = buffers_read(p.regions[i]);
    if (std::none_of(reads.begin(), reads.end(), [&](int b) { return c.local.count(b) != 0; })) {
      c.before.push_back(p.regions[i]);
      continue;
    }
    auto next = p.regions[i];
    if (takes_rows(next, c.local)) {
      if (p.buffers[static_cast<size_t>(next.anchor->a)].elements != items * rows * extent(next, next.anchor->k) || extent(next, next.anchor->m[0]) != m) return std::nullopt;
      if (extent(next, next.anchor->k) * extent(next, next.anchor->n[0]) > most_packed_elements) return std::nullopt;
      c.last = std::move(next);
      c.length = i + 1 - at;
      c.kept = triangle_of(c.first, -std::numeric_limits<double>::infinity());
      split_rows(c.first, rows);
      split_rows(c.last, rows);
      return c;
    }
    for (const auto& s : next.stores) {
      if (p.buffers[static_cast<size_t>(s.buffer)].kind != buffer_kind::scratch) return std::nullopt;
      c.local.insert(s.buffer);
    }
    if (!take_item_out(next, c.local, items, p)) return std::nullopt;
    c.between.push_back(std::move(next));
  }
  return std::nullopt;
}

/// Where a mask leaves out all beyond a diagonal: the loops over columns end there.
void bound_columns(chain& c, const loop_program& p) {

  if (!c.kept || c.kept->upper || c.between.size() != 1) return;
  const auto& head = *c.first.anchor;
  auto& rows = c.between[0];
  column_bound bound;
  bound.rows = extent(c.first, head.m[0]);
  bound.beyond = bound.rows + c.kept->diagonal;
  bound.columns = extent(c.first, head.n[0]);
  const int columns = reduced_axis(rows);
  const auto type = [&](int b) { return p.buffers[static_cast<size_t>(b)].dtype; };
  const bool pairs = type(c.last.anchor->a) == dtype::bfloat16 && type(c.last.anchor->b) == dtype::bfloat16; // packed otherwise: nobody looks whether they are finite
  if (bound.beyond <= 0 || pairs || columns < 0 || extent(rows, columns) != bound.columns || extent(c.last, c.last.anchor->k) != bound.columns) return;
  if (!leaves_zeros(rows, c.first.stores[0].buffer, columns)) return;
  c.first.bound = bound;
  c.first.bounded_axis = head.n[0];
  rows.bounded_axis = columns;
  c.last.bounded_axis = c.last.anchor->k;
}

} // namespace

void join_row_blocks(loop_program& p) {
  for (size_t i = 0; i < p.regions.size(); ++i) {
    if (!is_product(p.regions[i])) continue;
    auto c = chain_from(p, i);
    if (!c) continue;
    // Others may read what lies between, too.
    bool read_later = false;
    for (size_t j = 0; j < p.regions.size(); ++j) {
      if (j >= i && j < i + c->length) continue;
      for (int b : buffers_read(p.regions[j])) read_later = read_later || c->local.count(b);
    }
    for (const auto& r : c->before)
      for (int b : buffers_read(r)) read_later = read_later || c->local.count(b);
    if (read_later) continue;
    bound_columns(*c, p);
    int64_t items = 1;
    for (int a : c->first.anchor->batch) items *= extent(c->first, a);
    shrink_to_item(c->first, c->local, c->first.anchor->batch);
    for (auto& r : c->between) shrink_to_item(r, c->local, {r.item});
    auto& a = c->last.anchor->a_at;
    std::erase_if(a.terms, [&](const auto& t) { return std::count(c->last.anchor->batch.begin(), c->last.anchor->batch.end(), t.first) != 0; });
    for (int b : c->local) {
      p.buffers[static_cast<size_t>(b)].elements /= items;
      p.buffers[static_cast<size_t>(b)].of_item = true;
    }
    std::vector<region> joined = std::move(c->before);
    const int host = static_cast<int>(i + joined.size());
    joined.push_back(std::move(c->first));
    for (auto& r : c->between) joined.push_back(std::move(r));
    joined.push_back(std::move(c->last));
    for (size_t j = joined.size(); j-- > 0 && static_cast<int>(i + j) > host;) joined[j].host = host;
    std::move(joined.begin(), joined.end(), p.regions.begin() + static_cast<std::ptrdiff_t>(i));
    i += joined.size() - 1;
  }
}

} // namespace pragma::synthesis
