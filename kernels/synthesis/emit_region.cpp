// The loop structure of a region: passes, blocks, tiles. Values as text are in emit_values.cpp.
#include "kernels/synthesis/emit_region.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

/// Elements that one float32 accumulator set may add before its total goes to float64: keeps the error of a sum of n
/// numbers at that of some hundred additions.
constexpr int64_t sum_block = 16384;
/// A block whose mean and squared distances are taken one after the other stays in the first-level cache.
constexpr int64_t moments_block = 4096;
/// Steps of a column sum before its float32 accumulator is added to the total.
constexpr int64_t column_block_steps = 64;

std::string number(int64_t n) { return std::to_string(n); }

const std::vector<int> none;

} // namespace

region_emitter::region_emitter(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, size_t n)
    : p_(program), r_(r), s_(s), all_(all), number_(n) {
  names_.assign(r.exprs.size(), "");
  here_.assign(r.exprs.size(), "");
  vec_ = s.vector_axis;
  const bool any_reduced = r.reduced_mask() != 0;
  columns_ = any_reduced && vec_ >= 0 && !r.axes[static_cast<size_t>(vec_)].reduced;
  element_mask_ = any_reduced ? r.reduced_mask() : vec_ >= 0 ? 1u << vec_ : 0;
  for (size_t a = 0; a < r.axes.size(); ++a) {
    if (static_cast<int>(a) == vec_ || static_cast<int>(a) == r.item) continue;
    (element_mask_ & (1u << a) ? inner_ : outer_).push_back(static_cast<int>(a));
  }
  plan_ = plan_passes(r, element_mask_, s.merge_passes && !columns_);
  if (s.keep_rows && !columns_) kept_ = values_worth_keeping(r, plan_, element_mask_);
  find_live();
}

std::string region_emitter::text(const std::string& followers) {
  followers_ = followers;
  for (const auto& a : r_.axes)
    if (a.extent == 0 && !a.reduced) return "  // no elements\n";
  if (r_.anchor) {
    anchor();
    return out_.str();
  }
  if (r_.has_window()) line("// window over " + number(row_elements(r_)) + " positions");
  outer_loops([&] {
    if (columns_) column_mode();
    else row_mode();
  });
  return out_.str();
}

void region_emitter::open_axis(int a) {
  const auto& x = r_.axes[static_cast<size_t>(a)];
  const std::string v = var(a);
  if (x.guard.output_axis >= 0 && x.guard.output_axis != vec_) {
    const std::string start = number(x.guard.stride) + " * " + var(x.guard.output_axis) + " - " + number(x.guard.padding);
    line("const int64_t " + v + "_begin = first_inside(" + start + ", " + number(x.guard.dilation) + ");");
    line("const int64_t " + v + "_end = last_inside(" + start + ", " + number(x.guard.dilation) + ", " + number(x.guard.limit) + ", " +
         number(x.extent) + ");");
    open("for (int64_t " + v + " = " + v + "_begin; " + v + " < " + v + "_end; ++" + v + ") {");
    return;
  }
  open("for (int64_t " + v + " = 0; " + v + " < " + number(x.extent) + "; ++" + v + ") {");
  if (x.guard.output_axis == vec_ && vec_ >= 0)
    line("const window_place inside" + number(a) + "{" + number(x.guard.stride) + ", " + number(x.guard.dilation) + " * " + v + " - " + number(x.guard.padding) + ", " +
         number(x.guard.limit) + "};");
}

void region_emitter::outer_loops(const std::function<void()>& body) {
  const bool parallel = all_.threads > 1 && !outer_.empty() && r_.host < 0;
  if (parallel) {
    int64_t work = 1;
    size_t depth = 0;
    while (depth < outer_.size() && work < 8 * all_.threads) work *= extent(outer_[depth++]);
    line("#pragma omp parallel for num_threads(threads) schedule(static)" + (depth > 1 ? " collapse(" + std::to_string(depth) + ")" : ""));
  }
  for (int a : outer_) open("for (int64_t " + var(a) + " = 0; " + var(a) + " < " + number(extent(a)) + "; ++" + var(a) + ") {");
  body();
  for (size_t i = 0; i < outer_.size(); ++i) close();
}

const std::vector<int>& region_emitter::reduces(int pass) const {
  const auto it = plan_.reduces.find(pass);
  return it == plan_.reduces.end() ? none : it->second;
}

bool region_emitter::flushes(int e) const { return !is_arg(e) && (at(e).op == "sum" || at(e).op == "prod"); }

std::vector<int> region_emitter::pass_roots(int pass) const {
  std::vector<int> roots;
  for (int e : reduces(pass))
    if (live_[static_cast<size_t>(e)]) roots.push_back(at(e).args[0]);
  if (const auto it = plan_.stores.find(pass); it != plan_.stores.end())
    for (int s : it->second) roots.push_back(r_.stores[static_cast<size_t>(s)].value);
  return roots;
}

int64_t region_emitter::block_limit(int pass) const {
  for (int e : reduces(pass))
    if (plan_.moments.count(e)) return moments_block;
  return sum_block;
}

// -- row mode ------------------------------------------------------------------------------------------------------------

void region_emitter::row_mode() {
  in_elements_ = false;
  named_values(0);
  for (int e : kept_) line("alignas(64) float row" + number(e) + "[" + number(row_elements(r_)) + "];");
  for (int pass = 1; pass <= plan_.passes; ++pass) row_pass(pass);
  row_stores(false);
}

void region_emitter::row_stores(bool columns) {
  in_elements_ = false;
  for (int s : plan_.row_stores) {
    const auto& st = r_.stores[static_cast<size_t>(s)];
    if (columns) {
      open("for (int t = 0; t < T; ++t) {");
      line("const int64_t j = i + t * W;");
      store_value(st, true);
      close();
    } else {
      store_value(st, false);
    }
  }
}

void region_emitter::row_pass(int pass) {
  current_pass_ = pass;
  if (pass_roots(pass).empty()) return;
  const int64_t limit = block_limit(pass);
  const int64_t n = extent(vec_);
  bool flush = false;
  for (int e : reduces(pass)) flush = flush || flushes(e);
  blocked_ = flush && n > limit;
  flush_depth_ = blocked_ ? inner_.size() : 0;
  if (flush && !blocked_) {
    int64_t product = n;
    flush_depth_ = inner_.size();
    while (flush_depth_ > 0 && product * extent(inner_[flush_depth_ - 1]) <= limit) product *= extent(inner_[--flush_depth_]);
  }
  const int64_t vectors = std::min(n, limit) / all_.lanes;
  unroll_ = static_cast<int>(std::clamp<int64_t>(s_.unroll, 1, std::max<int64_t>(1, vectors)));

  std::string what;
  for (int e : reduces(pass)) what += (what.empty() ? "" : ", ") + at(e).op + (plan_.moments.count(e) ? " and squared distances" : "");
  if (plan_.stores.count(pass)) what += what.empty() ? "results" : ", results";
  if (plan_.passes > 1) line("// pass " + number(pass) + ": " + what);
  for (int e : reduces(pass)) {
    if (plan_.moments.count(e)) line("moments moments" + number(e) + ";");
    else if (flushes(e))
      line(std::string(is_floating(at(e).dtype) ? "double " : "int64_t ") + reduce_name(e) + "_total = " + (at(e).op == "sum" ? "0" : "1") + ";");
    else line((is_arg(e) ? position_type(e) : lane_type(at(e).dtype)) + " " + reduce_name(e) + "_part[" + number(unroll_) + "];");
    if (!flushes(e)) line("for (auto& part : " + reduce_name(e) + "_part) part = " + identity(e) + ";");
  }
  for (size_t i = 0; i < r_.exprs.size(); ++i)
    if (r_.exprs[i].kind == expr_kind::scan && live_[i])
      line((pass > 1 ? "" : is_floating(r_.exprs[i].dtype) ? "double " : "int64_t ") + ("carry" + number(static_cast<int64_t>(i))) + " = " +
           (r_.exprs[i].op == "sum" ? "0" : "1") + ";");
  row_loops(0, pass);
  for (int e : reduces(pass)) {
    if (plan_.moments.count(e)) {
      const auto& m = plan_.moments.at(e);
      if (uses_[static_cast<size_t>(e)] > 0) line("const vf " + reduce_name(e) + " = splat(float(moments" + number(e) + ".sum()));");
      line("const vf " + reduce_name(m.squares) + " = splat(float(moments" + number(e) + ".squares));");
      names_[static_cast<size_t>(m.squares)] = reduce_name(m.squares);
    } else if (flushes(e)) {
      const std::string cast = at(e).dtype == dtype::float32 ? "float" : at(e).dtype == dtype::float64 ? "double" : at(e).dtype == dtype::int64 ? "int64_t" : "int32_t";
      line("const " + lane_type(at(e).dtype) + " " + reduce_name(e) + " = splat(" + cast + "(" + reduce_name(e) + "_total));");
    } else if (is_arg(e)) {
      line("const vl " + reduce_name(e) + " = splat(" + std::string(at(e).op == "argmax" ? "highest" : "lowest") + "_place(" + reduce_name(e) + "_part));");
    } else {
      line("const " + lane_type(at(e).dtype) + " " + reduce_name(e) + " = splat(" + (at(e).op == "max" ? "highest" : "lowest") + "(" + reduce_name(e) + "_part));");
    }
    names_[static_cast<size_t>(e)] = reduce_name(e);
  }
  in_elements_ = false;
  named_values(pass);
}

void region_emitter::row_loops(size_t depth, int pass) {
  if (blocked_ && depth == inner_.size()) {
    const int64_t n = extent(vec_), b = block_limit(pass);
    open("for (int64_t block = 0; block < " + number(n) + "; block += " + number(b) + ") {");
    line("const int64_t end = std::min<int64_t>(block + " + number(b) + ", " + number(n) + ");");
    row_block(depth, pass);
    close();
  } else if (!blocked_ && depth == flush_depth_) {
    row_block(depth, pass);
  } else {
    open_axis(inner_[depth]);
    row_loops(depth + 1, pass);
    close();
  }
}

/// Everything between two flushes.
void region_emitter::row_block(size_t depth, int pass) {
  int64_t count = 1;
  for (size_t d = depth; d < inner_.size(); ++d) count *= extent(inner_[d]);
  for (int e : reduces(pass)) {
    if (!flushes(e)) continue;
    line(lane_type(at(e).dtype) + " " + reduce_name(e) + "_part[" + number(unroll_) + "];");
    line("for (auto& part : " + reduce_name(e) + "_part) part = " + identity(e) + ";");
  }
  row_nest(depth, pass, false);
  for (int e : reduces(pass)) {
    if (plan_.moments.count(e)) {
      const std::string n = blocked_ ? "double(end - block)" : "double(" + number(count * extent(vec_)) + ")";
      line("const double block_sum" + number(e) + " = total(" + reduce_name(e) + "_part);");
      line("const vf block_mean" + number(e) + " = splat(float(block_sum" + number(e) + " / " + n + "));");
      line("vf squares" + number(e) + "_part[" + number(unroll_) + "] = {};");
      current_moments_ = e;
      row_nest(depth, pass, true);
      line("moments" + number(e) + ".add(" + n + ", block_sum" + number(e) + ", total(squares" + number(e) + "_part), block_mean" + number(e) + "[0]);");
    } else if (flushes(e)) {
      line(reduce_name(e) + "_total " + (at(e).op == "sum" ? "+= total(" : "*= product(") + reduce_name(e) + "_part);");
    }
  }
}

void region_emitter::row_nest(size_t depth, int pass, bool second) {
  if (depth == inner_.size()) {
    vector_loop(pass, second);
    return;
  }
  open_axis(inner_[depth]);
  row_nest(depth + 1, pass, second);
  close();
}

std::string region_emitter::row_arguments(int pass, bool second, const std::string& part) const {
  std::string s;
  if (second) return ", squares" + number(current_moments_) + "_part" + part;
  for (int e : reduces(pass)) s += ", " + reduce_name(e) + "_part" + part;
  return s;
}

/// One request per vector and contiguous load; addresses past the end are harmless.
void region_emitter::prefetches(int pass) {
  if (pass > 1 && row_elements(r_) * 4 < (256 << 10)) return; // the first pass brought the row
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (x.kind == expr_kind::load && live_[i] && x.args.empty() && std::abs(x.at.coefficient(vec_)) == 1)
      line("__builtin_prefetch(" + address(x.buffer, x.at, true) + " + " + number(s_.prefetch) + ");");
  }
}

void region_emitter::vector_loop(int pass, bool second) {
  const int64_t n = extent(vec_), w = all_.lanes;
  const std::string name = second ? "distance" + number(pass) : "pass" + number(pass);
  const auto one = [&](const std::string& position, const std::string& lanes, const std::string& part) {
    return name + "(" + position + ", " + lanes + row_arguments(pass, second, part) + ");";
  };
  std::string parameters = "int64_t i, auto lanes";
  if (second) parameters += ", vf& squares";
  else
    for (int e : reduces(pass)) parameters += ", " + (is_arg(e) ? position_type(e) : lane_type(at(e).dtype)) + "& " + reduce_name(e);
  open("const auto " + name + " = [&](" + parameters + ") __attribute__((always_inline)) {");
  if (second) {
    const auto& m = plan_.moments.at(current_moments_);
    element_values({m.source}, true);
    line("const vf distance = " + ref(m.source) + " - block_mean" + number(current_moments_) + ";");
    line("squares = keep(lanes, squares + distance * distance, squares);");
  } else {
    if (s_.prefetch > 0) prefetches(pass);
    element_values(pass_roots(pass), false);
    for (int e : reduces(pass)) {
      const auto value = ref(at(e).args[0]);
      const auto r = reduce_name(e);
      const std::string side = at(e).op == "max" || at(e).op == "argmax" ? "take_higher(" : "take_lower(";
      if (at(e).op == "sum") line(r + " = keep(lanes, " + r + " + " + operand(at(e).args[0]) + ", " + r + ");");
      else if (at(e).op == "prod") line(r + " = keep(lanes, " + r + " * " + operand(at(e).args[0]) + ", " + r + ");");
      else if (is_arg(e)) line(side + r + ", " + value + ", " + affine(at(e).at, true) + ", " + number(at(e).at.coefficient(vec_)) + ", lanes);");
      else line(side + r + ", " + value + ", lanes);");
    }
    if (const auto it = plan_.stores.find(pass); it != plan_.stores.end())
      for (int s : it->second) store_value(r_.stores[static_cast<size_t>(s)], true);
  }
  in_elements_ = false;
  close("};");
  const int64_t step = unroll_ * w, tail = n % w;
  const std::string unrolled = "for (int u = 0; u < " + number(unroll_) + "; ++u) " + one("i + u * W", "all_lanes{}", "[u]");
  if (blocked_) {
    line(second ? "i = block;" : "int64_t i = block;");
    if (unroll_ > 1) {
      open("for (; i + " + number(step) + " <= end; i += " + number(step) + ")");
      line(unrolled);
      indent_ -= 2;
    }
    if (unroll_ == 1 || n % step >= w || block_limit(pass) % step != 0)
      line("for (; i + W <= end; i += W) " + one("i", "all_lanes{}", "[0]"));
    if (tail) line("if (i < end) " + one("i", "some_lanes<" + number(tail) + ">{}", "[0]"));
    return;
  }
  const int64_t main_end = unroll_ > 1 ? n / step * step : 0, vector_end = n / w * w;
  if (main_end > 0) {
    open("for (int64_t i = 0; i < " + number(main_end) + "; i += " + number(step) + ")");
    line(unrolled);
    indent_ -= 2;
  }
  if (vector_end > main_end)
    line("for (int64_t i = " + number(main_end) + "; i < " + number(vector_end) + "; i += W) " + one("i", "all_lanes{}", "[0]"));
  if (tail) line(one(number(vector_end), "some_lanes<" + number(tail) + ">{}", "[0]"));
}

// -- column mode ---------------------------------------------------------------------------------------------------------

void region_emitter::column_mode() {
  in_elements_ = false;
  in_tile_ = false;
  for (int pass = 0; pass <= plan_.passes; ++pass) named_values(pass);
  bool guarded = false;
  for (const auto& a : r_.axes) guarded = guarded || (a.guard.output_axis >= 0 && a.guard.output_axis == vec_);
  open(std::string("const auto columns = [&](auto count, int64_t i, ") + "auto lanes" + (guarded ? ", auto border" : "") +
       ") __attribute__((always_inline)) {");
  line("constexpr int T = decltype(count)::value;");
  in_tile_ = true;
  named_values(0);
  for (int pass = 1; pass <= plan_.passes; ++pass) column_pass(pass);
  row_stores(true);
  close("};");
  in_tile_ = false;
  column_tiles();
}

void region_emitter::column_pass(int pass) {
  current_pass_ = pass;
  if (pass_roots(pass).empty()) return;
  if (plan_.passes > 1) line("// pass " + number(pass));
  int64_t steps = 1;
  for (int a : inner_) steps *= extent(a);
  bool flush = false;
  for (int e : reduces(pass)) flush = flush || (at(e).op == "sum" && at(e).dtype == dtype::float32);
  blocked_ = flush && steps > 2 * column_block_steps;
  flush_depth_ = 0;
  if (blocked_) {
    int64_t product = 1;
    flush_depth_ = inner_.size();
    while (flush_depth_ > 0 && product * extent(inner_[flush_depth_ - 1]) <= column_block_steps) product *= extent(inner_[--flush_depth_]);
  }
  for (int e : reduces(pass)) {
    const auto type = is_arg(e) ? position_type(e) : lane_type(at(e).dtype);
    line(type + " " + reduce_name(e) + "[T];");
    line("for (int t = 0; t < T; ++t) " + reduce_name(e) + "[t] = " + identity(e) + ";");
  }
  for (size_t i = 0; i < r_.exprs.size(); ++i)
    if (r_.exprs[i].kind == expr_kind::scan && live_[i]) {
      const auto n = number(static_cast<int64_t>(i));
      if (pass == 1) line(lane_type(r_.exprs[i].dtype) + " carry" + n + "[T];");
      line("for (int t = 0; t < T; ++t) carry" + n + "[t] = " + constant(r_.exprs[i].op == "sum" ? 0 : 1, r_.exprs[i].dtype, true) + ";");
    }
  column_block(0, pass);
  for (int e : reduces(pass)) {
    if (is_arg(e)) {
      line("vl " + reduce_name(e) + "_at[T];");
      line("for (int t = 0; t < T; ++t) " + reduce_name(e) + "_at[t] = to<vl>(" + reduce_name(e) + "[t].at);");
      names_[static_cast<size_t>(e)] = reduce_name(e) + "_at";
    } else {
      names_[static_cast<size_t>(e)] = reduce_name(e);
    }
  }
  in_elements_ = false;
  named_values(pass);
}

void region_emitter::column_block(size_t depth, int pass) {
  if (!blocked_ || depth == flush_depth_) {
    // Long loops at this depth are cut into blocks with accumulators of their own.
    if (!blocked_) return column_nest(depth, pass);
    const bool cut = depth == inner_.size();
    if (!cut) {
      for (int e : reduces(pass))
        if (at(e).op == "sum" && at(e).dtype == dtype::float32) line("vf " + reduce_name(e) + "_part[T] = {};");
      column_nest(depth, pass);
      for (int e : reduces(pass))
        if (at(e).op == "sum" && at(e).dtype == dtype::float32)
          line("for (int t = 0; t < T; ++t) " + reduce_name(e) + "[t] += " + reduce_name(e) + "_part[t];");
      return;
    }
  }
  const int a = inner_[depth];
  if (blocked_ && depth + 1 == inner_.size() && flush_depth_ == inner_.size()) {
    const auto v = var(a);
    open("for (int64_t block = 0; block < " + number(extent(a)) + "; block += " + number(column_block_steps) + ") {");
    for (int e : reduces(pass))
      if (at(e).op == "sum" && at(e).dtype == dtype::float32) line("vf " + reduce_name(e) + "_part[T] = {};");
    line("const int64_t end = std::min<int64_t>(block + " + number(column_block_steps) + ", " + number(extent(a)) + ");");
    open("for (int64_t " + v + " = block; " + v + " < end; ++" + v + ") {");
    column_nest(depth + 1, pass);
    close();
    for (int e : reduces(pass))
      if (at(e).op == "sum" && at(e).dtype == dtype::float32)
        line("for (int t = 0; t < T; ++t) " + reduce_name(e) + "[t] += " + reduce_name(e) + "_part[t];");
    close();
    return;
  }
  open_axis(a);
  column_block(depth + 1, pass);
  close();
}

void region_emitter::column_nest(size_t depth, int pass) {
  if (depth < inner_.size()) {
    open_axis(inner_[depth]);
    column_nest(depth + 1, pass);
    close();
    return;
  }
  open("for (int t = 0; t < T; ++t) {");
  line("const int64_t j = i + t * W;");
  element_values(pass_roots(pass), false);
  for (int e : reduces(pass)) {
    const auto value = ref(at(e).args[0]);
    const bool part = blocked_ && at(e).op == "sum" && at(e).dtype == dtype::float32;
    const auto r = reduce_name(e) + (part ? "_part[t]" : "[t]");
    const std::string side = at(e).op == "max" || at(e).op == "argmax" ? "take_higher(" : "take_lower(";
    if (at(e).op == "sum") line(r + " = " + r + " + " + operand(at(e).args[0]) + ";");
    else if (at(e).op == "prod") line(r + " = " + r + " * " + operand(at(e).args[0]) + ";");
    else if (is_arg(e)) line(side + r + ", " + value + ", " + affine(at(e).at, true) + ", " + number(at(e).at.coefficient(vec_)) + ", all_lanes{});");
    else line(side + r + ", " + value + ", all_lanes{});");
  }
  if (const auto it = plan_.stores.find(pass); it != plan_.stores.end())
    for (int s : it->second) store_value(r_.stores[static_cast<size_t>(s)], true);
  in_elements_ = false;
  close();
}

void region_emitter::column_tiles() {
  const int64_t n = extent(vec_), w = all_.lanes;
  // Outputs whose windows lie inside of the input along the vector axis: [low, high).
  int64_t low = 0, high = n;
  bool guarded = false;
  for (const auto& a : r_.axes) {
    if (a.guard.output_axis != vec_ || a.guard.output_axis < 0) continue;
    guarded = true;
    const auto& g = a.guard;
    low = std::max(low, (g.padding + g.stride - 1) / g.stride);
    const int64_t reach = g.limit - 1 + g.padding - g.dilation * (a.extent - 1);
    high = std::min(high, reach < 0 ? 0 : reach / g.stride + 1);
  }
  const auto call = [&](int count, const std::string& at, const std::string& lanes, bool border) {
    return "columns(vectors<" + number(count) + ">{}, " + at + ", " + lanes + (guarded ? (border ? ", at_border" : ", inside") : "") + ");";
  };
  if (n < w) {
    line(call(1, "0", "some_lanes<" + number(n) + ">{}", true));
    return;
  }
  if (high < low) high = low = 0;
  int64_t i = 0;
  for (; i < low && i + w <= n; i += w) line(call(1, number(i), "all_lanes{}", true));
  const int tile = static_cast<int>(std::clamp<int64_t>(s_.tile, 1, std::max<int64_t>(1, (high - i) / w)));
  const int64_t step = tile * w;
  if (i + step <= high) {
    const int64_t end = i + (high - i) / step * step;
    line("for (int64_t i = " + number(i) + "; i < " + number(end) + "; i += " + number(step) + ") " + call(tile, "i", "all_lanes{}", false));
    i = end;
  }
  if (i + w <= high) {
    const int64_t left = (high - i) / w;
    line(call(static_cast<int>(left), number(i), "all_lanes{}", false));
    i += left * w;
  }
  while (i < n) {
    // What is left is done by a whole vector that overlaps its neighbour, or in the border's careful way.
    const int64_t begin = i + w <= n ? i : n - w;
    line(call(1, number(begin), "all_lanes{}", begin + w > high || begin < low));
    i = begin + w;
  }
}

std::string emit_region(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, size_t number,
                        const std::string& followers) {
  return region_emitter(program, r, s, all, number).text(followers);
}

} // namespace pragma::synthesis
