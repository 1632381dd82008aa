#include "synthesis/cpp/values.hpp"

#include "synthesis/cpp/types.hpp"

#include <cmath>
#include <cstdlib>

namespace pragma::synthesis {

namespace {

constexpr size_t longest_inline = 70; ///< characters of a value that has no line of its own

} // namespace

value_writer::value_writer(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, code& out)
    : p_(program), r_(r), s_(s), all_(all), layout_(layout), out_(out), names_(r.exprs.size()), here_(r.exprs.size()) {}

written value_writer::splat(double value, dtype type) { return {fmt::format("{}({})", out_.use("splat"), lane_literal(value, type))}; }

written value_writer::value(int e) {
  const auto i = static_cast<size_t>(e);
  if (at(e).kind == expr_kind::constant) return splat(at(e).value, at(e).dtype);
  if (in_elements_ && !here_[i].text.empty()) return here_[i];
  if (!names_[i].empty()) return {names_[i] + (of(e) == lifetime::tile ? "[t]" : "")};
  return build(e);
}

std::string value_writer::operand(int e) {
  const auto w = value(e);
  return w.binds == binding::infix ? "(" + w.text + ")" : w.text;
}

written value_writer::call(const std::string& function, const std::vector<int>& args) {
  written w{function + "("};
  for (size_t i = 0; i < args.size(); ++i) {
    const auto arg = value(args[i]);
    w.text += (i ? ", " : "") + arg.text;
    w.indexed = w.indexed || arg.indexed;
  }
  w.text += ")";
  return w;
}

written value_writer::build(int e) {
  const auto& x = at(e);
  switch (x.kind) {
    case expr_kind::constant: return splat(x.value, x.dtype);
    case expr_kind::load: return load(x, of(e) != lifetime::row);
    case expr_kind::index: {
      const auto c = layout_.vector_axis >= 0 ? x.at.coefficient(layout_.vector_axis) : 0;
      return {fmt::format("{}{}({}, {})", out_.use("ramp"), x.dtype == dtype::int64 ? "" : "<" + lane_type(x.dtype) + ">", affine(x.at), c), binding::whole, c != 0};
    }
    case expr_kind::scan: return scan(e);
    case expr_kind::reduce: return {reduction(e)};
    case expr_kind::anchor: return {"sum"};
    case expr_kind::op: break;
  }
  const auto& known = traits(x.op);
  if (x.op == operation::convert) return convert(x);
  if (x.op == operation::select) return call(out_.use("select"), x.args);
  if (known.cpp.as == spelling::form::prefix) {
    const auto of = value(x.args[0]);
    // A sign before a sign would be another operator.
    return narrowed({std::string(known.cpp.text) + (of.binds == binding::whole ? of.text : "(" + of.text + ")"), binding::prefix, of.indexed}, x.dtype);
  }
  if (auto product = quotient(e); !product.text.empty()) return product;
  if (known.cpp.as == spelling::form::infix) return infix(x);
  return narrowed(call(out_.use(all_.cheap_math && !known.cpp_cheap.empty() ? known.cpp_cheap : known.cpp.text), x.args), x.dtype);
}

written value_writer::narrowed(written w, dtype type) {
  if (!wraps(type)) return w;
  return {fmt::format("{}<{}>({})", out_.use("wrapped"), memory_type(type), w.text), binding::whole, w.indexed};
}

written value_writer::scan(int e) {
  const auto& x = at(e);
  const auto of = value(x.args[0]);
  if (!layout_.columns) {
    auto w = call(out_.use("scan_" + std::string(name_of(x.op))), x.args);
    w.text.insert(w.text.size() - 1, fmt::format(", carry{}", e));
    return w;
  }
  const auto carry = fmt::format("carry{}[t]", e);
  std::string next;
  switch (x.op) {
    case operation::max: next = fmt::format("{}({}, {})", out_.use("v_maximum"), carry, of.text); break;
    case operation::min: next = fmt::format("{}({}, {})", out_.use("v_minimum"), carry, of.text); break;
    case operation::log_sum: next = fmt::format("{}({}, {})", out_.use("log_of_both"), carry, of.text); break;
    case operation::decayed_sum: next = fmt::format("{} * {} + {}", operand(x.args[1]), carry, operand(x.args[0])); break;
    default: next = fmt::format("{} {} {}", carry, traits(x.op).cpp.text, operand(x.args[0]));
  }
  return {fmt::format("({} = {})", carry, next), binding::whole, of.indexed || (x.args.size() > 1 && value(x.args[1]).indexed)};
}

written value_writer::convert(const expr& x) {
  const auto from = at(x.args[0]).dtype;
  const auto to = lane_type(x.dtype);
  if (x.dtype == dtype::boolean) return call(out_.use("truth"), x.args);
  if (from == dtype::boolean) return call(fmt::format("{}<{}>", out_.use("count_of"), to), x.args);
  return narrowed(lane_type(from) == to ? value(x.args[0]) : call(fmt::format("{}<{}>", out_.use("to"), to), x.args), x.dtype);
}

written value_writer::quotient(int e) {
  const auto& x = at(e);
  if (x.op != operation::div || !all_.reciprocals || x.dtype != dtype::float32) return {};
  const auto& divisor = at(x.args[1]);
  std::string inverse;
  if (divisor.kind == expr_kind::constant && divisor.value != 0 && std::isfinite(1 / static_cast<float>(divisor.value)) && at(x.args[0]).kind != expr_kind::constant) {
    inverse = lane_literal(1 / divisor.value, x.dtype);
  } else if (of(x.args[1]) != lifetime::element && of(e) == lifetime::element) { // one division per row instead of one per element
    inverse = fmt::format("inverse{}{}", x.args[1], of(x.args[1]) == lifetime::tile ? "[t]" : "");
  } else {
    return {};
  }
  return {operand(x.args[0]) + " * " + inverse, binding::infix, value(x.args[0]).indexed};
}

written value_writer::infix(const expr& x) {
  const auto is_constant = [&](int e) { return at(e).kind == expr_kind::constant; };
  const auto side = [&](int e, int other) -> written {
    // A scalar constant may stand beside a vector as it is.
    if (is_constant(e) && !is_constant(other) && at(e).dtype != dtype::boolean) return {lane_literal(at(e).value, at(e).dtype)};
    auto w = value(e);
    if (w.binds == binding::infix) w.text = "(" + w.text + ")";
    return w;
  };
  const auto left = side(x.args[0], x.args[1]), right = side(x.args[1], x.args[0]);
  const auto compares_wide = [&](int e) { return (is_constant(e) || of(e) == lifetime::row) && size_of(at(e).dtype) == 8; };
  if (traits(x.op).result == result_rule::truth && compares_wide(x.args[0]) && compares_wide(x.args[1])) { // once, not lane by lane
    const auto first = [&](const written& w, int e) { return is_constant(e) ? w.text : "(" + w.text + ")[0]"; };
    if (!is_constant(x.args[0]) || !is_constant(x.args[1]))
      return {fmt::format("{}({} {} {})", out_.use("splat"), first(left, x.args[0]), traits(x.op).cpp.text, first(right, x.args[1]))};
  }
  const auto text = fmt::format("{} {} {}", left.text, traits(x.op).cpp.text, right.text);
  const bool indexed = left.indexed || right.indexed;
  if (traits(x.op).result == result_rule::truth) return {fmt::format("{}({})", out_.use("mask"), text), binding::whole, indexed};
  return narrowed({text, binding::infix, indexed}, x.dtype);
}

void value_writer::name_known(int ready) {
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    const auto& x = at(e);
    if (!layout_.live[i] || !names_[i].empty() || layout_.plan.ready[i] != ready || x.kind == expr_kind::constant || x.kind == expr_kind::reduce || x.op == operation::placed) continue;
    if (of(e) == lifetime::element || !in_scope(e)) continue;
    const auto name = fmt::format("v{}", e);
    const auto w = build(e);
    if (of(e) == lifetime::tile) {
      out_.line("{} {}[T];", lane_type(x.dtype), name);
      out_.block("for (int t = 0; t < T; ++t)");
      if (w.indexed) out_.line("const int64_t j = i + t * W;");
      out_.line("{}[t] = {};", name, w.text);
      out_.close();
    } else {
      out_.line("const {} {} = {};", lane_type(x.dtype), name, w.text);
    }
    names_[i] = name;
  }
  if (all_.reciprocals) name_reciprocals(ready);
}

void value_writer::name_reciprocals(int ready) {
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (!layout_.live[i] || x.op != operation::div || x.dtype != dtype::float32 || of(static_cast<int>(i)) != lifetime::element) continue;
    const int d = x.args[1];
    if (at(d).kind == expr_kind::constant || of(d) == lifetime::element || layout_.plan.ready[static_cast<size_t>(d)] != ready || inverses_.count(d)) continue;
    if (!in_scope(d)) continue;
    inverses_.insert(d);
    if (of(d) == lifetime::tile) {
      out_.line("vf inverse{}[T];", d);
      out_.line("for (int t = 0; t < T; ++t) inverse{}[t] = 1.0f / {};", d, operand(d));
    } else {
      out_.line("const vf inverse{} = 1.0f / {};", d, operand(d));
    }
  }
}

bool value_writer::inlines(int e, const written& w, int count) const {
  const auto& x = at(e);
  const bool simple = (x.kind == expr_kind::op && !traits(x.op).expensive) || x.kind == expr_kind::load;
  return count == 1 && simple && w.text.size() < longest_inline;
}

void value_writer::elements(const std::vector<int>& roots, int pass) {
  here_.assign(r_.exprs.size(), {});
  in_elements_ = true;
  std::vector<int> count(r_.exprs.size(), 0);
  for (int e : roots) ++count[static_cast<size_t>(e)];
  const auto kept_since = [&](int e) { return layout_.kept.count(e) ? layout_.plan.ready[static_cast<size_t>(e)] + 1 : INT32_MAX; };
  for (size_t i = r_.exprs.size(); i-- > 0;) {
    const int e = static_cast<int>(i);
    if (count[i] == 0 || of(e) != lifetime::element || pass > kept_since(e)) continue;
    for (int a : r_.exprs[i].args) ++count[static_cast<size_t>(a)];
  }
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    const auto& x = at(e);
    if (count[i] == 0 || of(e) != lifetime::element || x.kind == expr_kind::reduce || x.op == operation::placed) continue;
    const bool from_row = pass > kept_since(e), keeps = pass == kept_since(e);
    const auto w = from_row ? written{fmt::format("{}(row{} + {}, lanes)", out_.use("load"), e, row_index())} : build(e);
    if (!keeps && !from_row && inlines(e, w, count[i])) {
      here_[i] = w;
      continue;
    }
    const auto name = fmt::format("v{}", e);
    out_.line("const {} {} = {};", lane_type(x.dtype), name, w.text);
    here_[i] = {name};
    if (keeps) out_.line("{}(row{} + {}, {}, lanes);", out_.use("store"), e, row_index(), name);
  }
}

std::string value_writer::row_index() const {
  std::string s = "i";
  int64_t stride = extent(layout_.vector_axis);
  for (size_t k = layout_.inner.size(); k-- > 0;) {
    s = fmt::format("{} * {} + {}", stride, var(layout_.inner[k]), s);
    stride *= extent(layout_.inner[k]);
  }
  return s;
}

std::string value_writer::reduction(int e) const { return fmt::format("{}{}", name_of(at(e).op), e); }

std::string value_writer::accumulator(int e) {
  if (!finds_place(at(e).op)) return lane_type(at(e).dtype);
  const auto value = lane_type(at(at(e).args[0]).dtype);
  return fmt::format("{}<{}, {}>", out_.use("position"), value, value == "vd" || value == "vl" ? "vl" : "vi");
}

std::string value_writer::beginning(int e) {
  const auto& x = at(e);
  const bool place = finds_place(x.op);
  auto type = place ? at(x.args[0]).dtype : x.dtype;
  if (wraps(type) || type == dtype::boolean) type = dtype::int32; // in lanes
  const auto value = fmt::format("{}({})", out_.use("splat"), identity_literal(traits(x.op).start, type));
  return place ? accumulator(e) + "{" + value + ", {}}" : value;
}

void value_writer::join(int e, const std::string& into, const std::string& lanes) {
  const auto& x = at(e);
  const auto& how = traits(x.op).cpp;
  if (how.as == spelling::form::infix) {
    const auto joined = fmt::format("{} {} {}", into, how.text, operand(x.args[0]));
    if (lanes.empty()) out_.line("{} = {};", into, joined);
    else out_.line("{} = {}({}, {}, {});", into, out_.use("keep"), lanes, joined, into);
    return;
  }
  const auto in_range = lanes.empty() ? std::string("all_lanes{}") : lanes;
  const auto joined = text(x.args[0]);
  if (finds_place(x.op)) {
    out_.use(fmt::format("{}_place", how.text)); // of the same name: it takes a position
    out_.line("{}({}, {}, {}, {}, {});", how.text, into, joined, affine(x.at), x.at.coefficient(layout_.vector_axis), in_range);
  } else {
    out_.line("{}({}, {}, {});", out_.use(how.text), into, joined, in_range);
  }
}

} // namespace pragma::synthesis
