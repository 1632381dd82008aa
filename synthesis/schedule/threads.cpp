#include "synthesis/schedule/threads.hpp"

#include "synthesis/schedule/schedule.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

constexpr int64_t line = 16;             ///< float32 of a cache line: no two threads write to one
constexpr int64_t least_row = 256;       ///< elements of a block in a vector loop
constexpr double function_work = 8;      ///< a polynomial beside one addition
constexpr size_t most_axes = 30;         ///< they are bits of expr::axes

int64_t extent_of(const region& r, int a) { return r.axes[static_cast<size_t>(a)].extent; }

int64_t outside_of(const region& r, int vector_axis) {
  int64_t n = 1;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (!r.axes[a].reduced && static_cast<int>(a) != vector_axis) n *= r.axes[a].extent;
  return n;
}

bool guarded(const region& r, int a) {
  return std::any_of(r.axes.begin(), r.axes.end(), [a](const auto& x) { return x.guard.output_axis == a; });
}

/// How many blocks of at least `least` elements to make of an axis of n, with `outside` loops around them: as many for each thread, or so many that it
/// hardly matters. 1: none.
int64_t blocks_of(int64_t n, int64_t outside, int threads, int64_t least) {
  int64_t most = 1;
  for (int64_t p = 2; p <= 64 * threads && n / p >= least; ++p) {
    if (n % p != 0 || (n / p) % line != 0) continue;
    if (outside * p % threads == 0) return p;
    if (most * outside < 8 * threads) most = p;
  }
  return most;
}

/// Axis a becomes two: blocks (a), and elements of `inner` each (a + 1).
void split(region& r, int a, int64_t inner) {
  const auto moved = [a](int x) { return x >= a ? x + 1 : x; };
  const auto forms = [&](index_form& f) {
    std::vector<std::pair<int, int64_t>> terms;
    for (const auto& [x, c] : f.terms) {
      if (x == a) terms.push_back({a, c * inner});
      terms.push_back({moved(x), c});
    }
    std::sort(terms.begin(), terms.end());
    f.terms = std::move(terms);
  };
  for (auto& s : r.stores) forms(s.at);
  for (auto& e : r.exprs) {
    forms(e.at);
    const uint32_t below = (1u << a) - 1, own = e.axes >> a & 1u;
    e.axes = (e.axes & below) | own << a | (e.axes & ~below) << 1;
  }
  for (auto& x : r.axes)
    if (x.guard.output_axis >= 0) x.guard.output_axis = moved(x.guard.output_axis);
  axis blocks = r.axes[static_cast<size_t>(a)];
  blocks.extent /= inner;
  r.axes[static_cast<size_t>(a)].extent = inner;
  r.axes.insert(r.axes.begin() + a, blocks);
}

/// Elements or columns: the vector axis in blocks.
void split_vectors(region& r, int threads, int lanes) {
  const auto axes = vector_axes(r, lanes);
  if (axes.empty() || extent_of(r, axes[0]) == 0) return;
  const int v = axes[0];
  if (r.axes[static_cast<size_t>(v)].reduced || guarded(r, v)) return;
  const int64_t outside = outside_of(r, v);
  if (outside >= 8 * threads || (outside > 0 && outside % threads == 0)) return;
  const int64_t blocks = blocks_of(extent_of(r, v), outside, threads, r.reduced_mask() ? 2 * line : least_row);
  if (blocks > 1) split(r, v, extent_of(r, v) / blocks);
}

/// Leaves out expressions that no store needs.
void drop_unneeded(region& r) {
  const auto needed = live_exprs(r);
  std::vector<int> now(r.exprs.size(), -1);
  std::vector<expr> kept;
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    if (!needed[i]) continue;
    now[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(r.exprs[i]));
    for (int& a : kept.back().args) a = now[static_cast<size_t>(a)];
    if (int& d = kept.back().at.dynamic; d >= 0) d = now[static_cast<size_t>(d)];
  }
  for (auto& s : r.stores) {
    s.value = now[static_cast<size_t>(s.value)];
    if (s.at.dynamic >= 0) s.at.dynamic = now[static_cast<size_t>(s.at.dynamic)];
  }
  r.exprs = std::move(kept);
}

/// Leaves out axes of one element.
void drop_still_axes(region& r) {
  std::vector<int> now(r.axes.size(), -1);
  std::vector<axis> kept;
  for (size_t a = 0; a < r.axes.size(); ++a)
    if (r.axes[a].extent != 1) {
      now[a] = static_cast<int>(kept.size());
      kept.push_back(r.axes[a]);
    }
  const auto forms = [&](index_form& f) {
    std::erase_if(f.terms, [&](const auto& t) { return now[static_cast<size_t>(t.first)] < 0; });
    for (auto& t : f.terms) t.first = now[static_cast<size_t>(t.first)];
  };
  for (auto& s : r.stores) forms(s.at);
  for (auto& e : r.exprs) {
    forms(e.at);
    uint32_t axes = 0;
    for (size_t a = 0; a < now.size(); ++a)
      if (now[a] >= 0 && (e.axes >> a & 1u)) axes |= 1u << now[a];
    e.axes = axes;
  }
  for (auto& a : kept)
    if (a.guard.output_axis >= 0) a.guard.output_axis = now[static_cast<size_t>(a.guard.output_axis)];
  r.axes = std::move(kept);
}

/// The reductions of elements: those that need no other one first. None where one of them has no float32 total.
std::vector<int> totals_of(const region& r) {
  std::vector<int> found;
  const auto needed = live_exprs(r);
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const auto& e = r.exprs[i];
    if (!needed[i] || e.kind != expr_kind::reduce) continue;
    const auto below = needed_for(r, e.args);
    bool first = true;
    for (size_t j = 0; j < i; ++j) first = first && !(below[j] && r.exprs[j].kind == expr_kind::reduce);
    if (!first) continue;
    if (finds_place(e.op) || e.dtype != dtype::float32) return {};
    found.push_back(static_cast<int>(i));
  }
  return found;
}

int scratch_of(loop_program& p, int64_t elements) {
  buffer b;
  b.elements = elements;
  b.index = static_cast<int>(std::count_if(p.buffers.begin(), p.buffers.end(), [](const auto& x) { return x.kind == buffer_kind::scratch; }));
  b.name = "scratch" + std::to_string(b.index);
  p.buffers.push_back(b);
  return static_cast<int>(p.buffers.size()) - 1;
}

/// Where the axes that are not reduced are walked in order, innermost first; and the number of elements.
std::pair<index_form, int64_t> place_of_rows(const region& r) {
  index_form at;
  int64_t stride = 1;
  for (size_t a = r.axes.size(); a-- > 0;)
    if (!r.axes[a].reduced) {
      if (r.axes[a].extent > 1) at.terms.push_back({static_cast<int>(a), stride});
      stride *= r.axes[a].extent;
    }
  std::sort(at.terms.begin(), at.terms.end());
  return {at, stride};
}

expr load_of(int buffer, const index_form& at) {
  expr e;
  e.kind = expr_kind::load;
  e.buffer = buffer;
  e.at = at;
  for (const auto& [a, c] : at.terms) e.axes |= 1u << a;
  return e;
}

/// A row, or a few, of very many elements: a region for totals of parts, one that joins them, and the rest, which finds them in memory. Returns how
/// many regions stand before the rest now; 0: not this region.
size_t take_totals_out(loop_program& p, size_t index, int threads) {
  region rest = p.regions[index];
  int longest = -1;
  for (size_t a = 0; a < rest.axes.size(); ++a)
    if (rest.axes[a].reduced && (longest < 0 || rest.axes[a].extent > extent_of(rest, longest))) longest = static_cast<int>(a);
  const int64_t rows = outside_of(rest, -1);
  // With more rows than half the threads, less is gained than a region more costs.
  if (longest < 0 || rows == 0 || 2 * rows > threads || row_elements(rest) < least_row * threads) return 0;
  const auto totals = totals_of(rest);
  const int64_t parts = blocks_of(extent_of(rest, longest), rows, threads, least_row);
  if (totals.empty() || parts < 2) return 0;

  region first = rest;
  split(first, longest, extent_of(rest, longest) / parts);
  first.axes[static_cast<size_t>(longest)].reduced = false;
  first.stores.clear();
  const auto [part_at, part_count] = place_of_rows(first);

  region join; // the rows, and the parts where the longest axis was
  join.axes = rest.axes;
  for (auto& a : join.axes)
    if (a.reduced) a.extent = 1;
  join.axes[static_cast<size_t>(longest)].extent = parts;
  index_form joined_at = part_at; // `first` has one axis more, behind the parts
  for (auto& [a, c] : joined_at.terms) a -= a > longest ? 1 : 0;
  const auto [row_at, row_count] = place_of_rows(rest);

  for (int e : totals) {
    auto& total = rest.exprs[static_cast<size_t>(e)];
    const int of_parts = scratch_of(p, part_count), of_rows = scratch_of(p, row_count);
    first.stores.push_back({of_parts, part_at, e});
    join.exprs.push_back(load_of(of_parts, joined_at));
    expr sum = total;
    sum.args = {static_cast<int>(join.exprs.size()) - 1};
    join.exprs.push_back(sum);
    join.stores.push_back({of_rows, row_at, static_cast<int>(join.exprs.size()) - 1});
    total = load_of(of_rows, row_at);
  }
  drop_still_axes(join);
  drop_unneeded(first);
  drop_unneeded(rest);
  uint32_t walked = 0;
  for (const auto& e : rest.exprs) walked |= e.axes;
  const bool reduces = rest.has_reduce();
  for (size_t a = 0; a < rest.axes.size() && !reduces; ++a) {
    if (!rest.axes[a].reduced) continue;
    rest.axes[a].reduced = false;
    if (!(walked >> a & 1u)) rest.axes[a].extent = 1; // what is left is of rows
  }
  drop_still_axes(rest);
  if (!reduces) order_axes(rest); // what was reduced beside what was not may be walked as one now
  p.regions[index] = std::move(first);
  p.regions.insert(p.regions.begin() + static_cast<std::ptrdiff_t>(index) + 1, {std::move(join), std::move(rest)});
  return 2;
}

/// A product of few results and very many steps: each thread sums up some of the steps, and one more region adds the sums.
bool take_steps_apart(loop_program& p, size_t index, int threads) {
  const region whole = p.regions[index];
  const auto& c = *whole.anchor;
  if (c.op != operation::matmul || c.m.size() != 1 || c.n.size() != 1 || whole.axes.size() >= most_axes) return false;
  const auto size = size_of_contraction(whole);
  int64_t batch = 1;
  for (int a : c.batch) batch *= extent_of(whole, a);
  if (batch >= threads || size.k % (threads * line) != 0) return false;
  if (threads * size.m * size.n > (size.m + size.n) * size.k / 8) return false; // the sums would be more memory than the operands are

  const int parts = static_cast<int>(whole.axes.size());
  const uint32_t parts_bit = 1u << parts;
  index_form at;
  int64_t stride = 1;
  const auto walked = [&](int a, int64_t extent) {
    at.terms.push_back({a, stride});
    stride *= extent;
  };
  walked(c.n[0], size.n);
  walked(c.m[0], size.m);
  for (size_t i = c.batch.size(); i-- > 0;) walked(c.batch[i], extent_of(whole, c.batch[i]));
  walked(parts, threads);
  std::sort(at.terms.begin(), at.terms.end());
  const int sums = scratch_of(p, stride);
  int product = 0; // its expression
  while (whole.exprs[static_cast<size_t>(product)].kind != expr_kind::anchor) ++product;

  region first = whole;
  first.axes[static_cast<size_t>(c.k)].extent /= threads;
  first.axes.push_back(axis{});
  first.axes.back().extent = threads;
  for (auto* f : {&first.anchor->a_at, &first.anchor->b_at}) f->terms.push_back({parts, f->coefficient(c.k) * (size.k / threads)});
  first.anchor->batch.insert(first.anchor->batch.begin(), parts);
  first.exprs[static_cast<size_t>(product)].axes |= parts_bit;
  first.stores = {{sums, at, product}};
  drop_unneeded(first);

  region rest = whole;
  rest.anchor.reset();
  rest.axes.push_back(axis{});
  rest.axes.back().extent = threads;
  rest.axes.back().reduced = true;
  for (auto& a : rest.axes)
    if (a.contracted) a = axis{};
  const auto moved = [product](int& e) { e += e >= product ? 1 : 0; };
  for (auto& e : rest.exprs) {
    for (int& a : e.args) moved(a);
    moved(e.at.dynamic);
  }
  for (auto& s : rest.stores) moved(s.value);
  auto& total = rest.exprs[static_cast<size_t>(product)];
  total.kind = expr_kind::reduce;
  total.op = operation::sum;
  total.args = {product};
  rest.exprs.insert(rest.exprs.begin() + product, load_of(sums, at));
  drop_unneeded(rest);
  drop_still_axes(rest);
  order_axes(rest);
  p.regions[index] = std::move(first);
  p.regions.insert(p.regions.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(rest));
  return true;
}

} // namespace

double work_of(const region& r) {
  const auto count = [&](uint32_t axes) {
    double n = 1;
    for (size_t a = 0; a < r.axes.size(); ++a)
      if (axes >> a & 1u) n *= static_cast<double>(r.axes[a].extent);
    return n;
  };
  double work = 0;
  const auto needed = live_exprs(r);
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const auto& e = r.exprs[i];
    if (!needed[i] || e.kind == expr_kind::constant || e.kind == expr_kind::anchor) continue;
    work += count(e.kind == expr_kind::reduce ? r.exprs[static_cast<size_t>(e.args[0])].axes : e.axes) *
            (e.kind == expr_kind::op && traits(e.op).expensive ? function_work : 1);
  }
  for (const auto& s : r.stores) {
    uint32_t axes = 0;
    for (const auto& [a, c] : s.at.terms) axes |= 1u << a;
    work += count(axes);
  }
  if (r.anchor) {
    const auto size = size_of_contraction(r);
    double products = static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
    for (int a : r.anchor->batch) products *= static_cast<double>(extent_of(r, a));
    work += products / 2; // a fused multiplication and addition, from registers
  }
  return work;
}

void split_for_threads(loop_program& program, int threads, int lanes) {
  if (threads < 2) return;
  // A region's host is known by its number: where there are any, none is added.
  const bool hosts = std::any_of(program.regions.begin(), program.regions.end(), [](const auto& r) { return r.host >= 0; });
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const auto fits = [&] {
      const auto& r = program.regions[i];
      return r.host < 0 && r.scan_axis < 0 && !r.has_window() && r.axes.size() < most_axes && work_of(r) >= least_shared_work;
    };
    if (program.regions[i].anchor) {
      if (!hosts && fits()) take_steps_apart(program, i, threads);
      continue;
    }
    for (size_t more = 1; more > 0 && !hosts && fits() && !program.regions[i].scatters(); i += more) more = take_totals_out(program, i, threads);
    if (fits()) split_vectors(program.regions[i], threads, lanes);
  }
}

} // namespace pragma::synthesis
