#include "synthesis/cpp/columns.hpp"

#include "synthesis/cpp/rows.hpp"
#include "synthesis/cpp/types.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

/// Steps of a column sum before its float32 accumulator is added to the total.
constexpr int64_t block_steps = 64;

bool rounds(const expr& x) { return x.op == operation::sum && x.dtype == dtype::float32; }

bool guards(const region& r, int vector_axis) {
  for (const auto& a : r.axes)
    if (a.guard.output_axis >= 0 && a.guard.output_axis == vector_axis) return true;
  return false;
}

} // namespace

std::vector<column_tile> tiles_of_columns(const region& r, int vector_axis, int lanes, int widest) {
  const int64_t n = r.axes[static_cast<size_t>(vector_axis)].extent, w = lanes;
  // Outputs whose windows lie inside of the input along the vector axis: [low, high).
  int64_t low = 0, high = n;
  for (const auto& a : r.axes) {
    const auto& g = a.guard;
    if (g.output_axis != vector_axis || g.output_axis < 0) continue;
    low = std::max(low, (g.padding + g.stride - 1) / g.stride);
    const int64_t reach = g.limit - 1 + g.padding - g.dilation * (a.extent - 1);
    high = std::min(high, reach < 0 ? 0 : reach / g.stride + 1);
  }
  if (n < w) return {{0, 0, 0, 1, n, true}};
  std::vector<column_tile> tiles;
  if (high < low) high = low = 0;
  int64_t i = 0;
  for (; i < low && i + w <= n; i += w) tiles.push_back({i, 0, 0, 1, w, true});
  const int tile = static_cast<int>(std::clamp<int64_t>(widest, 1, std::max<int64_t>(1, (high - i) / w)));
  const int64_t step = tile * w;
  if (i + step <= high) {
    const int64_t end = i + (high - i) / step * step;
    tiles.push_back({i, end, step, tile, w, false});
    i = end;
  }
  if (i + w <= high) {
    const int64_t left = (high - i) / w;
    tiles.push_back({i, 0, 0, static_cast<int>(left), w, false});
    i += left * w;
  }
  while (i < n) {
    // What is left is done by a whole vector that overlaps its neighbour, or in the border's careful way.
    const int64_t begin = i + w <= n || r.scatters() ? i : n - w, count = std::min(w, n - begin); // what is joined with memory is joined once
    tiles.push_back({begin, 0, 0, 1, count, begin + w > high || begin < low});
    i = begin + count;
  }
  return tiles;
}

column_cut cut_of_columns(const region& r, const region_layout& l, int pass) {
  column_cut cut;
  const auto extent = [&](int a) { return r.axes[static_cast<size_t>(a)].extent; };
  int64_t steps = 1;
  for (int a : l.inner) steps *= extent(a);
  for (int e : reductions_of(l.plan, pass)) cut.blocked = cut.blocked || rounds(r.exprs[static_cast<size_t>(e)]);
  cut.blocked = cut.blocked && steps > 2 * block_steps;
  if (!cut.blocked) return cut;
  cut.flush_depth = l.inner.size();
  for (int64_t product = 1; cut.flush_depth > 0 && product * extent(l.inner[cut.flush_depth - 1]) <= block_steps;) product *= extent(l.inner[--cut.flush_depth]);
  cut.cuts_loop = cut.flush_depth == l.inner.size();
  return cut;
}

void column_writer::write() {
  for (int pass = 0; pass <= layout_.plan.passes; ++pass) values_.name_known(pass);
  out_.block("const auto columns = [&](auto count, int64_t i, auto lanes{}) __attribute__((always_inline))", guards(r_, layout_.vector_axis) ? ", auto border" : "");
  out_.line("constexpr int T = decltype(count)::value;");
  values_.enter_tile();
  values_.name_known(0);
  for (pass_ = 1; pass_ <= layout_.plan.passes; ++pass_) pass();
  stores_of_rows();
  out_.close(";");
  values_.leave_tile();
  tiles();
}

void column_writer::stores_of_rows() {
  for (int s : layout_.plan.row_stores) {
    out_.block("for (int t = 0; t < T; ++t)");
    out_.line("const int64_t j = i + t * W;");
    values_.store_vector(r_.stores[static_cast<size_t>(s)]);
    out_.close();
  }
}

void column_writer::pass() {
  if (roots_of(r_, layout_, pass_).empty()) return;
  if (layout_.plan.passes > 1) out_.comment("pass {}", pass_);
  cut_ = cut_of_columns(r_, layout_, pass_);
  const auto& reductions = reductions_of(layout_.plan, pass_);
  for (int e : reductions) {
    out_.line("{} {}[T];", values_.accumulator(e), values_.reduction(e));
    out_.line("for (int t = 0; t < T; ++t) {}[t] = {};", values_.reduction(e), values_.beginning(e));
  }
  begin_scans();
  block(0);
  for (int e : reductions) {
    auto name = values_.reduction(e);
    if (finds_place(at(e).op)) {
      out_.line("vl {}_at[T];", name);
      out_.line("for (int t = 0; t < T; ++t) {0}_at[t] = {1}<vl>({0}[t].at);", name, out_.use("to"));
      name += "_at";
    }
    values_.name(e, name);
  }
  values_.name_known(pass_);
}

void column_writer::begin_scans() {
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (x.kind != expr_kind::scan || !layout_.live[i]) continue;
    if (pass_ == 1) out_.line("{} carry{}[T];", lane_type(x.dtype), i);
    out_.line("for (int t = 0; t < T; ++t) carry{}[t] = {}({});", i, out_.use("splat"), identity_literal(traits(x.op).start, x.dtype));
  }
}

std::vector<int> column_writer::partial_sums() const {
  std::vector<int> sums;
  for (int e : reductions_of(layout_.plan, pass_))
    if (cut_.blocked && rounds(at(e))) sums.push_back(e);
  return sums;
}

void column_writer::begin_partial_sums() {
  for (int e : partial_sums()) out_.line("vf {}_part[T] = {{}};", values_.reduction(e));
}

void column_writer::add_partial_sums() {
  for (int e : partial_sums()) out_.line("for (int t = 0; t < T; ++t) {0}[t] += {0}_part[t];", values_.reduction(e));
}

void column_writer::block(size_t depth) {
  if (!cut_.blocked) return nest(depth);
  if (depth == cut_.flush_depth && !cut_.cuts_loop) {
    begin_partial_sums();
    nest(depth);
    add_partial_sums();
    return;
  }
  if (cut_.cuts_loop && depth + 1 == layout_.inner.size()) return cut_loop(layout_.inner[depth]);
  values_.open_axis(layout_.inner[depth]);
  block(depth + 1);
  out_.close();
}

/// A long loop is cut into blocks with accumulators of their own.
void column_writer::cut_loop(int axis) {
  const auto v = values_.var(axis);
  const auto [first, last] = values_.bounds(axis);
  out_.block("for (int64_t block = {}; block < {}; block += {})", first, last, block_steps);
  begin_partial_sums();
  out_.line("const int64_t end = least<int64_t>(block + {}, {});", block_steps, last);
  out_.block("for (int64_t {0} = block; {0} < end; ++{0})", v);
  values_.declare_place(axis);
  nest(layout_.inner.size());
  out_.close();
  add_partial_sums();
  out_.close();
}

void column_writer::nest(size_t depth) {
  if (depth == layout_.inner.size()) return vector();
  values_.open_axis(layout_.inner[depth]);
  nest(depth + 1);
  out_.close();
}

void column_writer::vector() {
  out_.block("for (int t = 0; t < T; ++t)");
  out_.line("const int64_t j = i + t * W;");
  values_.elements(roots_of(r_, layout_, pass_), pass_);
  for (int e : reductions_of(layout_.plan, pass_)) {
    const bool part = cut_.blocked && rounds(at(e));
    values_.join(e, values_.reduction(e) + (part ? "_part[t]" : "[t]"), "");
  }
  if (const auto it = layout_.plan.stores.find(pass_); it != layout_.plan.stores.end())
    for (int s : it->second) values_.store_vector(r_.stores[static_cast<size_t>(s)]);
  values_.end_elements();
  out_.close();
}

void column_writer::tiles() {
  const bool guarded = guards(r_, layout_.vector_axis);
  for (const auto& t : tiles_of_columns(r_, layout_.vector_axis, all_.lanes, s_.tile)) {
    const auto lanes = t.lanes == all_.lanes ? std::string("all_lanes{}") : fmt::format("some_lanes<{}>{{}}", t.lanes);
    const auto call = fmt::format("columns({}<{}>{{}}, {}, {}{});", out_.use("vectors"), t.vectors, t.step > 0 ? "i" : std::to_string(t.begin), lanes,
                                  !guarded ? "" : t.border ? ", at_border" : ", inside");
    if (t.step > 0) out_.line("for (int64_t i = {}; i < {}; i += {}) {}", t.begin, t.end, t.step, call);
    else out_.line("{}", call);
  }
}

} // namespace pragma::synthesis
