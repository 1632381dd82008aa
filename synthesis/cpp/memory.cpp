// Where values lie: indices, addresses, loops over axes, loads and stores.
#include "synthesis/cpp/types.hpp"
#include "synthesis/cpp/values.hpp"

#include <cstdlib>

namespace pragma::synthesis {

std::string value_writer::var(int axis) const {
  if (axis == layout_.vector_axis) return layout_.columns ? "j" : "i";
  if (axis == r_.item) return "item";
  const auto& x = r_.axes[static_cast<size_t>(axis)];
  return fmt::format("{}{}", x.window ? "k" : x.reduced ? "r" : "o", axis);
}

std::string value_writer::affine(const index_form& f) const {
  std::string s;
  for (const auto& [a, c] : f.terms) {
    const auto term = std::abs(c) == 1 ? var(a) : fmt::format("{} * {}", std::abs(c), var(a));
    s += s.empty() ? (c < 0 ? "-" : "") + term : (c < 0 ? " - " : " + ") + term;
  }
  if (s.empty()) return std::to_string(f.offset);
  if (f.offset != 0) s += fmt::format(" {} {}", f.offset < 0 ? '-' : '+', std::abs(f.offset));
  return s;
}

std::string value_writer::address(int buffer, const index_form& f) const {
  const auto& name = p_.buffers[static_cast<size_t>(buffer)].name;
  const auto index = affine(f);
  if (f.terms.empty() && f.offset == 0) return name;
  return name + (index[0] == '-' ? " - " + index.substr(1) : " + " + index);
}

void value_writer::open_loop(int axis) { out_.block("for (int64_t {0} = 0; {0} < {1}; ++{0})", var(axis), extent(axis)); }

std::pair<std::string, std::string> value_writer::bounds(int axis) {
  const auto& x = r_.axes[static_cast<size_t>(axis)];
  const auto& g = x.guard;
  if (axis == r_.bounded_axis) return {"0", "bound"};
  if (g.output_axis < 0 || g.output_axis == layout_.vector_axis) return {"0", std::to_string(x.extent)};
  const auto v = var(axis), start = fmt::format("{} * {} - {}", g.stride, var(g.output_axis), g.padding);
  out_.line("const int64_t {}_begin = {}({}, {});", v, out_.use("first_inside"), start, g.dilation);
  out_.line("const int64_t {}_end = last_inside({}, {}, {}, {});", v, start, g.dilation, g.limit, x.extent);
  return {v + "_begin", v + "_end"};
}

void value_writer::declare_place(int axis) {
  const auto& g = r_.axes[static_cast<size_t>(axis)].guard;
  if (g.output_axis < 0 || g.output_axis != layout_.vector_axis) return;
  out_.use("guarded");
  out_.line("const window_place inside{}{{{}, {} * {} - {}, {}}};", axis, g.stride, g.dilation, var(axis), g.padding, g.limit);
}

void value_writer::open_axis(int axis) {
  const auto [begin, end] = bounds(axis);
  out_.block("for (int64_t {0} = {1}; {0} < {2}; ++{0})", var(axis), begin, end);
  declare_place(axis);
}

written value_writer::load(const expr& x, bool lanes) {
  const int64_t step = layout_.vector_axis >= 0 ? x.at.coefficient(layout_.vector_axis) : 0;
  const auto from = address(x.buffer, x.at);
  const bool indexed = step != 0;
  const auto varies = [&](int e) { return layout_.vector_axis >= 0 && (r_.exprs[static_cast<size_t>(e)].axes & (1u << layout_.vector_axis)); };
  if (!x.args.empty() && step <= 1 && step >= 0 && !varies(x.args[0])) { // one computed place for all lanes: a row of a table
    const auto where = fmt::format("{} + ({})[0] * int64_t{{{}}}", from, text(x.args[0]), x.at.dynamic_step);
    if (step == 0 || !lanes) return {fmt::format("{}({})", out_.use("splat_memory"), where), binding::whole, indexed || value(x.args[0]).indexed};
    return {fmt::format("{}({}, lanes)", out_.use("load"), where), binding::whole, true};
  }
  if (!x.args.empty()) {
    auto index = operand(x.args[0]);
    if (x.at.dynamic_step != 1) index += fmt::format(" * int64_t{{{}}}", x.at.dynamic_step);
    return {fmt::format("{}<{}>({}, {}, {})", out_.use("gather"), step, from, index, lanes ? "lanes" : "all_lanes{}"), binding::whole, indexed || value(x.args[0]).indexed};
  }
  if (step == 0 || !lanes) return {fmt::format("{}({})", out_.use("splat_memory"), from), binding::whole, indexed};
  for (const auto& [a, c] : x.at.terms) {
    const auto& k = r_.axes[static_cast<size_t>(a)];
    if (k.window && k.guard.output_axis == layout_.vector_axis) return guarded(x, a, step);
  }
  if (step == 1) return {fmt::format("{}({}, lanes)", out_.use("load"), from), binding::whole, true};
  return {fmt::format("{}<{}>({}, lanes)", out_.use("load_strided"), step, from), binding::whole, true};
}

written value_writer::guarded(const expr& x, int axis, int64_t step) {
  return {fmt::format("{}<{}>({}, inside{}, j, {}, lanes, border)", out_.use("guarded"), step, address(x.buffer, x.at), axis, identity_literal(x.outside, x.dtype)),
          binding::whole, true};
}

void value_writer::store_scattered(const store& s, const char* lanes) {
  const auto& x = at(s.value);
  const int value = x.args[0], place = x.args[1], v = layout_.vector_axis;
  const int64_t step = v >= 0 ? s.at.coefficient(v) : 0;
  const bool row = step == 1 && !(at(place).axes & (1u << v)); // all lanes at one place
  const auto join = out_.use("join_" + std::string(name_of(s.join)));
  const auto call = row ? out_.use("scatter_row") : fmt::format("{}<{}>", out_.use("scatter"), step);
  out_.line("{}({}, {}, {}, {}, {}, {}, {});", call, address(s.buffer, s.at), text(place), s.step, s.limit, text(value), lanes, join);
}

void value_writer::store_first(const store& s) {
  if (s.scatters()) return store_scattered(s, "some_lanes<1>{}");
  out_.line("{}({}, {});", out_.use("store_first"), address(s.buffer, s.at), text(s.value));
}

void value_writer::store_vector(const store& s) {
  if (s.scatters()) return store_scattered(s, "lanes");
  const int v = layout_.vector_axis;
  const int64_t step = v >= 0 ? s.at.coefficient(v) : 0;
  if (step == 0) return store_first(s);
  const auto where = address(s.buffer, s.at);
  const auto what = text(s.value);
  if (step != 1) {
    out_.line("{}<{}>({}, {}, lanes);", out_.use("store_strided"), step, where, what);
    return;
  }
  const bool whole = !layout_.columns || extent(v) % all_.lanes == 0;
  bool aligned = s_.stream && whole && s.at.offset % all_.lanes == 0 && p_.buffers[static_cast<size_t>(s.buffer)].dtype == dtype::float32;
  for (const auto& [a, c] : s.at.terms) aligned = aligned && (a == v || c % all_.lanes == 0);
  out_.line("{}({}, {}, lanes);", out_.use(aligned ? "stream" : "store"), where, what);
}

} // namespace pragma::synthesis
