#include "synthesis/cpp/rows.hpp"

#include "synthesis/cpp/types.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

/// Elements that one float32 accumulator set may add before its total goes to float64: keeps the error of a sum of n
/// numbers at that of some hundred additions.
constexpr int64_t sum_block = 16384;
/// A block whose mean and squared distances are taken one after the other stays in the first-level cache.
constexpr int64_t moments_block = 4096;
/// Bytes of a row that the passes after the first find in the second-level cache.
constexpr int64_t row_in_cache = 256 << 10;

const std::vector<int> none;

} // namespace

const std::vector<int>& reductions_of(const pass_plan& plan, int pass) {
  const auto it = plan.reduces.find(pass);
  return it == plan.reduces.end() ? none : it->second;
}

std::vector<int> roots_of(const region& r, const region_layout& l, int pass) {
  std::vector<int> roots;
  for (int e : reductions_of(l.plan, pass))
    if (l.live[static_cast<size_t>(e)]) roots.push_back(r.exprs[static_cast<size_t>(e)].args[0]);
  if (const auto it = l.plan.stores.find(pass); it != l.plan.stores.end())
    for (int s : it->second) roots.push_back(r.stores[static_cast<size_t>(s)].value);
  return roots;
}

row_cut cut_of_row(const region& r, const region_layout& l, int pass, int lanes, int unroll) {
  row_cut cut;
  cut.block = sum_block;
  bool flush = false;
  for (int e : reductions_of(l.plan, pass)) {
    if (l.plan.moments.count(e)) cut.block = moments_block;
    flush = flush || adds_up(r.exprs[static_cast<size_t>(e)].op);
  }
  const auto extent = [&](int a) { return r.axes[static_cast<size_t>(a)].extent; };
  const int64_t n = extent(l.vector_axis);
  cut.blocked = flush && n > cut.block;
  if (flush) cut.flush_depth = l.inner.size();
  if (flush && !cut.blocked)
    for (int64_t product = n; cut.flush_depth > 0 && product * extent(l.inner[cut.flush_depth - 1]) <= cut.block;) product *= extent(l.inner[--cut.flush_depth]);
  cut.unroll = static_cast<int>(std::clamp<int64_t>(unroll, 1, std::max<int64_t>(1, std::min(n, cut.block) / lanes)));
  return cut;
}

const merged_moments* row_writer::moments(int e) const {
  const auto it = layout_.plan.moments.find(e);
  return it == layout_.plan.moments.end() ? nullptr : &it->second;
}

void row_writer::write() {
  if (s_.together > 1 && rows_together(r_, s_, s_.together) == s_.together) return rows_at_once();
  if (!layout_.outer.empty()) values_.open_loop(layout_.outer.back());
  values_.name_known(0);
  for (int e : layout_.kept) out_.line("alignas(64) float row{}[{}];", e, row_elements(r_));
  if (layout_.plan.followed.peak >= 0) followed();
  else
    for (pass_ = 1; pass_ <= layout_.plan.passes; ++pass_) pass();
  for (int s : layout_.plan.row_stores) values_.store_first(r_.stores[static_cast<size_t>(s)]);
  if (!layout_.outer.empty()) out_.close();
}

/// Each factor that rows share is read once for all of them, and memory is read in several places at once.
void row_writer::rows_at_once() {
  const int axis = layout_.outer.back();
  const auto row = values_.var(axis);
  rows_ = s_.together;
  pass_ = 1;
  cut_ = cut_of_row(r_, layout_, pass_, all_.lanes, std::max(1, s_.unroll / 2));
  out_.block("for (int64_t first = 0; first < {}; first += {})", values_.extent(axis), rows_);
  for (int e : reductions()) out_.line("{} {}_totals[{}] = {{}};", wide_type(at(e).dtype), values_.reduction(e), rows_);
  loops(0);
  out_.block("for (int64_t {0} = first; {0} < first + {1}; ++{0})", row, rows_);
  for (int e : reductions()) out_.line("const auto {0}_total = {0}_totals[{1} - first];", values_.reduction(e), row);
  values_.name_known(0);
  finish_totals();
  values_.name_known(1);
  for (int s : layout_.plan.row_stores) values_.store_first(r_.stores[static_cast<size_t>(s)]);
  out_.close();
  out_.close();
}

void row_writer::pass() {
  if (roots_of(r_, layout_, pass_).empty()) return;
  cut_ = cut_of_row(r_, layout_, pass_, all_.lanes, s_.unroll);
  std::string what;
  for (int e : reductions()) what += fmt::format("{}{}{}", what.empty() ? "" : ", ", name_of(at(e).op), moments(e) ? " and squared distances" : "");
  if (layout_.plan.stores.count(pass_)) what += what.empty() ? "results" : ", results";
  if (layout_.plan.passes > 1) out_.comment("pass {}: {}", pass_, what);
  begin_totals();
  begin_scans();
  loops(0);
  finish_totals();
  values_.name_known(pass_);
}

void row_writer::begin_totals() {
  for (int e : reductions()) {
    const auto name = values_.reduction(e);
    if (moments(e)) {
      out_.line("{} moments{};", out_.use("moments"), e);
    } else if (adds_up(at(e).op)) {
      out_.line("{} {}_total = {};", wide_type(at(e).dtype), name, traits(at(e).op).start == identity::zero ? 0 : 1);
    } else {
      out_.line("{} {}_part[{}];", values_.accumulator(e), name, cut_.unroll);
      out_.line("for (auto& part : {}_part) part = {};", name, values_.beginning(e));
    }
  }
}

void row_writer::begin_scans() {
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (x.kind != expr_kind::scan || !layout_.live[i]) continue;
    const auto start = traits(x.op).start;
    out_.line("{}carry{} = {};", pass_ > 1 ? "" : wide_type(x.dtype) + " ", i, start == identity::zero ? "0" : start == identity::one ? "1" : identity_literal(start, x.dtype));
  }
}

void row_writer::finish_totals() {
  for (int e : reductions()) {
    const auto name = values_.reduction(e), type = lane_type(at(e).dtype);
    const auto& known = traits(at(e).op);
    const auto splat = out_.use("splat");
    if (const auto* m = moments(e)) {
      if (layout_.uses[static_cast<size_t>(e)] > 0) out_.line("const vf {} = {}(float(moments{}.sum()));", name, splat, e);
      const auto squares = values_.reduction(m->squares);
      out_.line("const vf {} = {}(float(moments{}.squares));", squares, splat, e);
      values_.name(m->squares, squares);
    } else if (adds_up(at(e).op)) {
      const auto cast = type == "vi" ? std::string("int32_t") : memory_type(at(e).dtype);
      out_.line("const {} {} = {}({}({}_total));", type, name, splat, cast, name);
    } else {
      out_.line("const {} {} = {}({}({}_part));", finds_place(at(e).op) ? "vl" : type, name, splat, out_.use(known.cpp_finish), name);
    }
    values_.name(e, name);
  }
}

void row_writer::loops(size_t depth) {
  if (cut_.blocked && depth == layout_.inner.size()) {
    const int64_t n = values_.extent(layout_.vector_axis);
    const auto all = bounded() ? std::string("bound") : std::to_string(n);
    out_.block("for (int64_t block = 0; block < {}; block += {})", all, cut_.block);
    out_.line("const int64_t end = least<int64_t>(block + {}, {});", cut_.block, all);
    block(depth);
    out_.close();
  } else if (!cut_.blocked && depth == cut_.flush_depth) {
    block(depth);
  } else {
    values_.open_axis(layout_.inner[depth]);
    loops(depth + 1);
    out_.close();
  }
}

void row_writer::block(size_t depth) {
  int64_t elements = values_.extent(layout_.vector_axis);
  for (size_t d = depth; d < layout_.inner.size(); ++d) elements *= values_.extent(layout_.inner[d]);
  for (int e : reductions()) {
    if (!adds_up(at(e).op)) continue;
    const auto name = values_.reduction(e);
    out_.line("{} {}_part{}[{}];", lane_type(at(e).dtype), name, rows_ > 1 ? fmt::format("[{}]", rows_) : "", cut_.unroll);
    if (rows_ > 1) out_.line("for (auto& row : {}_part)", name);
    out_.line("{}for (auto& part : {}) part = {};", rows_ > 1 ? "  " : "", rows_ > 1 ? "row" : name + "_part", values_.beginning(e));
  }
  nest(depth, -1);
  for (int e : reductions()) {
    if (!moments(e)) {
      flush(e);
      continue;
    }
    const auto n = cut_.blocked ? std::string("double(end - block)") : fmt::format("double({})", elements);
    const auto total = out_.use("total");
    out_.line("const double block_sum{} = {}({}_part);", e, total, values_.reduction(e));
    out_.line("const vf block_mean{0} = {1}(float(block_sum{0} / {2}));", e, out_.use("splat"), n);
    out_.line("vf squares{}_part[{}] = {{}};", e, cut_.unroll);
    nest(depth, e);
    out_.line("moments{0}.add({1}, block_sum{0}, {2}(squares{0}_part), block_mean{0}[0]);", e, n, total);
  }
}

void row_writer::flush(int e) {
  if (!adds_up(at(e).op)) return;
  const auto& known = traits(at(e).op);
  if (rows_ > 1) out_.line("for (int r = 0; r < {3}; ++r) {0}_totals[r] {1}= {2}({0}_part[r]);", values_.reduction(e), known.cpp.text, out_.use(known.cpp_finish), rows_);
  else out_.line("{0}_total {1}= {2}({0}_part);", values_.reduction(e), known.cpp.text, out_.use(known.cpp_finish));
}

void row_writer::nest(size_t depth, int distances_of) {
  if (depth == layout_.inner.size()) return vectors(distances_of);
  values_.open_axis(layout_.inner[depth]);
  nest(depth + 1, distances_of);
  out_.close();
}

/// One request per vector and contiguous load; addresses past the end are harmless.
void row_writer::prefetches() {
  const bool ahead = s_.prefetch > 0 && (pass_ == 1 || (row_elements(r_) * 4 >= row_in_cache && layout_.plan.followed.peak < 0)); // else the first pass brought the row
  const int rows = s_.next_row && pass_ > 1 && pass_ == layout_.plan.passes && !layout_.outer.empty() ? layout_.outer.back() : -1;
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (x.kind != expr_kind::load || !layout_.live[i] || !x.args.empty() || std::abs(x.at.coefficient(layout_.vector_axis)) != 1) continue;
    const bool shared = std::none_of(layout_.outer.begin(), layout_.outer.end(), [&](int a) { return x.at.coefficient(a) != 0; }) && !layout_.outer.empty(); // a row before this one brought it
    if (ahead && !shared) out_.line("__builtin_prefetch({} + {});", values_.address(x.buffer, x.at), s_.prefetch);
    if (const int64_t step = rows < 0 ? 0 : x.at.coefficient(rows); step != 0)
      out_.line("__builtin_prefetch({} + {}, 0, 2);", values_.address(x.buffer, x.at), step); // to the second level
  }
}

std::string row_writer::call(int distances_of, const std::string& position, const std::string& lanes, const std::string& part) const {
  if (rows_ > 1) {
    auto s = fmt::format("for (int r = 0; r < {}; ++r) pass{}(first + r, {}, {}", rows_, pass_, position, lanes);
    for (int e : reductions()) s += fmt::format(", {}_part[r]{}", values_.reduction(e), part);
    return s + ");";
  }
  auto s = fmt::format("{}{}({}, {}", distances_of >= 0 ? "distance" : "pass", distances_of >= 0 ? distances_of : pass_, position, lanes);
  if (distances_of >= 0) return s + fmt::format(", squares{}_part{});", distances_of, part);
  for (int e : reductions()) s += fmt::format(", {}_part{}", values_.reduction(e), part);
  return s + ");";
}

void row_writer::step(int distances_of) {
  std::string parameters = (rows_ > 1 ? "int64_t " + values_.var(layout_.outer.back()) + ", " : std::string()) + "int64_t i, auto lanes";
  if (distances_of >= 0) {
    const int source = moments(distances_of)->source;
    out_.block("const auto distance{} = [&]({}, vf& squares) __attribute__((always_inline))", distances_of, parameters);
    values_.elements({source}, pass_);
    out_.line("const vf distance = {} - block_mean{};", values_.operand(source), distances_of);
    out_.line("squares = {}(lanes, squares + distance * distance, squares);", out_.use("keep"));
  } else {
    for (int e : reductions()) parameters += fmt::format(", {}& {}", values_.accumulator(e), values_.reduction(e));
    out_.block("const auto pass{} = [&]({}) __attribute__((always_inline))", pass_, parameters);
    prefetches();
    values_.elements(roots_of(r_, layout_, pass_), pass_);
    for (int e : reductions()) values_.join(e, values_.reduction(e), "lanes");
    if (const auto it = layout_.plan.stores.find(pass_); it != layout_.plan.stores.end())
      for (int s : it->second) values_.store_vector(r_.stores[static_cast<size_t>(s)]);
  }
  values_.end_elements();
  out_.close(";");
}

void row_writer::vectors(int distances_of) {
  step(distances_of);
  const int64_t n = values_.extent(layout_.vector_axis), w = all_.lanes, step = cut_.unroll * w, tail = n % w;
  const auto one = [&](const std::string& position, const std::string& lanes) { return call(distances_of, position, lanes, "[0]"); };
  const auto last = fmt::format("some_lanes<{}>{{}}", tail);
  const auto unrolled = [&] {
    out_.line("for (int u = 0; u < {}; ++u) {}", cut_.unroll, call(distances_of, "i + u * W", "all_lanes{}", "[u]"));
    out_.end();
  };
  if (cut_.blocked || bounded()) {
    const std::string end = cut_.blocked ? "end" : "bound";
    if (!cut_.blocked) out_.block();
    out_.line("{}i = {};", distances_of >= 0 ? "" : "int64_t ", cut_.blocked ? "block" : "0");
    if (cut_.unroll > 1) {
      out_.head("for (; i + {0} <= {1}; i += {0})", step, end);
      unrolled();
    }
    if (cut_.unroll == 1 || n % step >= w || cut_.block % step != 0 || bounded()) out_.line("for (; i + W <= {}; i += W) {}", end, one("i", "all_lanes{}"));
    if (tail) out_.line("if (i < {}) {}", end, one("i", last));
    if (!cut_.blocked) out_.close();
    return;
  }
  const int64_t main_end = cut_.unroll > 1 ? n / step * step : 0, vector_end = n / w * w;
  if (main_end > 0) {
    out_.head("for (int64_t i = 0; i < {}; i += {})", main_end, step);
    unrolled();
  }
  if (vector_end > main_end) out_.line("for (int64_t i = {}; i < {}; i += W) {}", main_end, vector_end, one("i", "all_lanes{}"));
  if (tail) out_.line("{}", one(std::to_string(vector_end), last));
}

} // namespace pragma::synthesis
