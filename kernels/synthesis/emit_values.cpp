// Values as text: loads, operators, constants, stores.
#include "kernels/synthesis/emit_region.hpp"

#include <cmath>

namespace pragma::synthesis {

namespace {

const std::set<std::string> expensive{"exp",  "exp_nonpositive", "log",  "log1p", "log1p_unit", "expm1", "tanh", "sigmoid", "erf",
                                      "erfc", "pow",             "sin",  "cos",   "tan",        "log2",  "log10", "exp2",   "atan2",
                                      "sinh", "cosh",            "asin", "acos",  "atan",       "lgamma"};
const std::map<std::string, std::string> infix{{"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"}, {"eq", "=="}, {"ne", "!="},
                                               {"lt", "<"},  {"le", "<="}, {"gt", ">"},  {"ge", ">="}, {"and", "&"}, {"or", "|"},
                                               {"xor", "^"}};

bool small_integer(dtype t) { return t == dtype::int16 || t == dtype::int8 || t == dtype::uint8; }

std::string memory_type(dtype t) {
  switch (t) {
    case dtype::float64: return "double";
    case dtype::int64: return "int64_t";
    case dtype::int32: return "int32_t";
    case dtype::int16: return "int16_t";
    case dtype::int8: return "int8_t";
    case dtype::uint8: return "uint8_t";
    case dtype::boolean: return "bool";
    default: return "float";
  }
}

} // namespace

std::set<int> values_worth_keeping(const region& r, const pass_plan& plan, uint32_t element_mask) {
  std::set<int> found;
  for (size_t i = 0; i < r.exprs.size(); ++i) {
    const auto& e = r.exprs[i];
    if (e.kind != expr_kind::op || !expensive.count(e.op) || !(e.axes & element_mask) || e.dtype != dtype::float32) continue;
    // Needed by a reduction of its own pass and by something later.
    bool now = false, later = false;
    for (size_t u = i + 1; u < r.exprs.size(); ++u)
      for (int a : r.exprs[u].args)
        if (a == static_cast<int>(i)) {
          if (r.exprs[u].kind == expr_kind::reduce) now = now || plan.ready[u] == plan.ready[i] + 1;
          else if (plan.ready[u] > plan.ready[i]) later = true;
        }
    for (const auto& s : r.stores) later = later || s.value == static_cast<int>(i);
    if (now && later) found.insert(static_cast<int>(i));
  }
  return found;
}

int region_emitter::level(int e) const {
  const auto& x = at(e);
  if (x.axes & element_mask_) return 3;
  if (columns_ && (((vec_ >= 0) && (x.axes & (1u << vec_))) || after_reduce_[static_cast<size_t>(e)])) return 2;
  return 1;
}

void region_emitter::find_live() {
  const size_t n = r_.exprs.size();
  live_.assign(n, false);
  after_reduce_.assign(n, false);
  uses_.assign(n, 0);
  for (const auto& s : r_.stores) {
    live_[static_cast<size_t>(s.value)] = true;
    ++uses_[static_cast<size_t>(s.value)];
  }
  for (size_t i = n; i-- > 0;)
    if (live_[i]) {
      auto args = r_.exprs[i].args;
      for (const auto& [sum, m] : plan_.moments)
        if (m.squares == static_cast<int>(i)) {
          args = {m.source};
          live_[static_cast<size_t>(sum)] = true; // found in the same pass, used by name only if somebody else does
        }
      for (int a : args) {
        live_[static_cast<size_t>(a)] = true;
        ++uses_[static_cast<size_t>(a)];
      }
    }
  for (size_t i = 0; i < n; ++i) {
    after_reduce_[i] = r_.exprs[i].kind == expr_kind::reduce;
    for (int a : r_.exprs[i].args) after_reduce_[i] = after_reduce_[i] || after_reduce_[static_cast<size_t>(a)];
  }
}

std::string region_emitter::lane_type(dtype t) const {
  switch (t) {
    case dtype::float32: return "vf";
    case dtype::float64: return "vd";
    case dtype::int64: return "vl";
    default: return "vi";
  }
}

std::string region_emitter::var(int axis) const {
  if (axis == vec_) return vector_var();
  if (axis == r_.item) return "item";
  if (r_.axes[static_cast<size_t>(axis)].window) return "k" + std::to_string(axis);
  return (r_.axes[static_cast<size_t>(axis)].reduced ? "r" : "o") + std::to_string(axis);
}

std::string region_emitter::affine(const index_form& f, bool with_vector) const {
  std::string s;
  for (const auto& [a, c] : f.terms) {
    if (a == vec_ && !with_vector) continue;
    const std::string name = var(a);
    const std::string magnitude = std::abs(c) == 1 ? name : std::to_string(std::abs(c)) + " * " + name;
    s += s.empty() ? (c < 0 ? "-" : "") + magnitude : (c < 0 ? " - " : " + ") + magnitude;
  }
  if (f.offset != 0 || s.empty())
    s += s.empty() ? std::to_string(f.offset) : (f.offset < 0 ? " - " : " + ") + std::to_string(std::abs(f.offset));
  return s;
}

std::string region_emitter::address(int buffer, const index_form& f, bool with_vector) {
  const auto& name = p_.buffers[static_cast<size_t>(buffer)].name;
  const std::string index = affine(f, with_vector);
  if (index == "0") return name;
  return name + (index[0] == '-' ? " - " + index.substr(1) : " + " + index);
}

std::string region_emitter::constant(double value, dtype type, bool vector) const {
  std::string s;
  if (is_floating(type)) {
    if (std::isnan(value)) s = "NAN";
    else if (std::isinf(value)) s = value > 0 ? "INFINITY" : "-INFINITY";
    else {
      char b[40];
      std::snprintf(b, sizeof b, type == dtype::float64 ? "%.17g" : "%.9g", value);
      s = b;
      if (s.find_first_of(".en") == std::string::npos) s += ".0";
    }
    if (type == dtype::float32 && std::isfinite(value)) s += "f";
    if (type == dtype::float64 && !std::isfinite(value)) s = "double(" + s + ")";
  } else if (type == dtype::boolean) {
    s = value != 0 ? "-1" : "0";
  } else if (type == dtype::int64) {
    s = "int64_t{" + std::to_string(static_cast<int64_t>(value)) + "}";
  } else {
    s = std::to_string(static_cast<int64_t>(value));
  }
  return vector ? "splat(" + s + ")" : s;
}

std::string region_emitter::ref(int e) {
  const auto i = static_cast<size_t>(e);
  if (at(e).kind == expr_kind::constant) return constant(at(e).value, at(e).dtype, true);
  if (in_elements_ && !here_[i].empty()) return here_[i];
  if (!names_[i].empty()) return names_[i] + (level(e) == 2 ? "[t]" : "");
  return build(e);
}

std::string region_emitter::operand(int e) {
  const auto s = ref(e);
  int depth = 0;
  bool simple = true;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '(' || s[i] == '[' || s[i] == '{') ++depth;
    else if (s[i] == ')' || s[i] == ']' || s[i] == '}') --depth;
    else if (depth == 0 && s[i] == ' ') simple = false;
  }
  return simple ? s : "(" + s + ")";
}

std::string region_emitter::call(const std::string& function, const expr& x) {
  std::string s = function + "(";
  for (size_t i = 0; i < x.args.size(); ++i) s += (i ? ", " : "") + ref(x.args[i]);
  return s + ")";
}

std::string region_emitter::build(int e) {
  const auto& x = at(e);
  switch (x.kind) {
    case expr_kind::constant: return constant(x.value, x.dtype, true);
    case expr_kind::load: return load(x, level(e) != 1 || (!columns_ && level(e) == 3));
    case expr_kind::index: {
      const auto c = vec_ >= 0 ? x.at.coefficient(vec_) : 0;
      return "ramp(" + affine(x.at, level(e) != 1 || !columns_ ? true : false) + ", " + std::to_string(c) + ")";
    }
    case expr_kind::scan: {
      const std::string carry = "carry" + std::to_string(e);
      if (columns_) return "(" + carry + "[t] = " + carry + "[t] " + (x.op == "sum" ? "+" : "*") + " " + operand(x.args[0]) + ")";
      return "scan_" + x.op + "(" + ref(x.args[0]) + ", " + carry + ")";
    }
    case expr_kind::reduce: return reduce_name(e);
    case expr_kind::anchor: return "sum";
    case expr_kind::op: break;
  }
  if (x.op == "convert") {
    const auto from = at(x.args[0]).dtype;
    if (x.dtype == dtype::boolean) return "truth(" + ref(x.args[0]) + ")";
    if (from == dtype::boolean) return "count_of<" + lane_type(x.dtype) + ">(" + ref(x.args[0]) + ")";
    std::string s = lane_type(from) == lane_type(x.dtype) ? ref(x.args[0]) : "to<" + lane_type(x.dtype) + ">(" + ref(x.args[0]) + ")";
    return small_integer(x.dtype) ? "wrapped<" + memory_type(x.dtype) + ">(" + s + ")" : s;
  }
  if (x.op == "select") return "select(" + ref(x.args[0]) + ", " + ref(x.args[1]) + ", " + ref(x.args[2]) + ")";
  if (x.op == "not") return x.dtype == dtype::boolean ? "~" + operand(x.args[0]) : "~" + operand(x.args[0]);
  if (x.op == "neg") return "-" + operand(x.args[0]);
  if (x.op == "div" && all_.reciprocals && x.dtype == dtype::float32) {
    const auto& divisor = at(x.args[1]);
    // One division per row instead of one per element.
    if (divisor.kind == expr_kind::constant && divisor.value != 0 && std::isfinite(1 / static_cast<float>(divisor.value)) &&
        at(x.args[0]).kind != expr_kind::constant)
      return operand(x.args[0]) + " * " + constant(1 / divisor.value, x.dtype, false);
    if (level(x.args[1]) < 3 && level(e) == 3) {
      const auto name = "inverse" + std::to_string(x.args[1]);
      return operand(x.args[0]) + " * " + name + (level(x.args[1]) == 2 ? "[t]" : "");
    }
  }
  if (const auto it = infix.find(x.op); it != infix.end()) {
    // A scalar constant may stand beside a vector as it is.
    std::string left, right;
    const auto plain = [&](int a) {
      return at(a).kind == expr_kind::constant && at(a).dtype != dtype::boolean ? constant(at(a).value, at(a).dtype, false) : operand(a);
    };
    left = at(x.args[1]).kind == expr_kind::constant ? operand(x.args[0]) : plain(x.args[0]);
    right = at(x.args[0]).kind == expr_kind::constant && at(x.args[1]).kind == expr_kind::constant ? operand(x.args[1]) : plain(x.args[1]);
    const std::string s = left + " " + it->second + " " + right;
    const bool compares = x.dtype == dtype::boolean && x.op != "and" && x.op != "or" && x.op != "xor";
    if (compares) return "mask(" + s + ")";
    return small_integer(x.dtype) ? "wrapped<" + memory_type(x.dtype) + ">(" + s + ")" : s;
  }
  const std::string cheap = all_.cheap_math && (x.op == "exp" || x.op == "exp_nonpositive") ? "_short" : "";
  return call("v_" + x.op + cheap, x);
}

std::string region_emitter::load(const expr& x, bool lanes) {
  const int64_t step = vec_ >= 0 ? x.at.coefficient(vec_) : 0;
  if (!x.args.empty()) {
    const std::string base = address(x.buffer, x.at, true);
    std::string index = operand(x.args[0]);
    if (x.at.dynamic_step != 1) index += " * int64_t{" + std::to_string(x.at.dynamic_step) + "}";
    return "gather<" + std::to_string(step) + ">(" + base + ", " + index + (lanes ? ", lanes)" : ", all_lanes{})");
  }
  if (step == 0 || !lanes) return "splat_memory(" + address(x.buffer, x.at, true) + ")";
  for (const auto& [a, c] : x.at.terms) {
    const auto& k = r_.axes[static_cast<size_t>(a)];
    if (!k.window || k.guard.output_axis != vec_) continue;
    // Outside of the input a window meets the identity of its reduction.
    std::string otherwise;
    for (const auto& e : r_.exprs)
      if (e.kind == expr_kind::reduce && otherwise.empty())
        otherwise = e.op == "sum"             ? constant(0, x.dtype, false)
                    : is_floating(x.dtype) ? constant(-INFINITY, x.dtype, false)
                                           : "std::numeric_limits<" + memory_type(x.dtype) + ">::min()";
    return "guarded<" + std::to_string(step) + ">(" + address(x.buffer, x.at, true) + ", inside" + std::to_string(a) + ", j, " + otherwise +
           ", lanes, border)";
  }
  if (step == 1) return "load(" + address(x.buffer, x.at, true) + ", lanes)";
  return "load_strided<" + std::to_string(step) + ">(" + address(x.buffer, x.at, true) + ", lanes)";
}

void region_emitter::store_value(const store& s, bool lanes) {
  const int64_t step = vec_ >= 0 ? s.at.coefficient(vec_) : 0;
  const std::string where = address(s.buffer, s.at, true);
  const std::string value = ref(s.value);
  if (!lanes || step == 0) {
    line("store_first(" + where + ", " + value + ");");
    return;
  }
  if (step == 1) {
    bool aligned = s_.stream && (!columns_ || extent(vec_) % all_.lanes == 0) && s.at.offset % all_.lanes == 0 && p_.buffers[static_cast<size_t>(s.buffer)].dtype == dtype::float32;
    for (const auto& [a, c] : s.at.terms) aligned = aligned && (a == vec_ || c % all_.lanes == 0);
    line((aligned ? "stream(" : "store(") + where + ", " + value + ", lanes);");
  } else {
    line("store_strided<" + std::to_string(step) + ">(" + where + ", " + value + ", lanes);");
  }
}

void region_emitter::named_values(int ready) {
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    const auto& x = at(e);
    if (!live_[i] || !names_[i].empty() || plan_.ready[i] != ready || x.kind == expr_kind::constant || x.kind == expr_kind::reduce) continue;
    const int l = level(e);
    if (l == 3) continue;
    // A level-1 value is emitted before the tiles, a level-2 value inside of them.
    if (columns_ && ((l == 2) != in_tile())) continue;
    names_[i] = "";
    const std::string name = "v" + std::to_string(e);
    if (l == 2) {
      const std::string text = build(e);
      line(lane_type(x.dtype) + " " + name + "[T];");
      open("for (int t = 0; t < T; ++t) {");
      if (text.find("j") != std::string::npos) line("const int64_t j = i + t * W;");
      line(name + "[t] = " + text + ";");
      close();
    } else {
      line("const " + lane_type(x.dtype) + " " + name + " = " + build(e) + ";");
    }
    names_[i] = name;
  }
  // Reciprocals of row values that elements are divided by.
  if (!all_.reciprocals) return;
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const auto& x = r_.exprs[i];
    if (!live_[i] || x.op != "div" || x.dtype != dtype::float32 || level(static_cast<int>(i)) != 3) continue;
    const int d = x.args[1];
    const auto at_d = static_cast<size_t>(d);
    if (at(d).kind == expr_kind::constant || level(d) == 3 || plan_.ready[at_d] != ready || inverses_.count(d)) continue;
    if (columns_ && ((level(d) == 2) != in_tile())) continue;
    inverses_.insert(d);
    const std::string name = "inverse" + std::to_string(d);
    if (level(d) == 2) {
      line("vf " + name + "[T];");
      line("for (int t = 0; t < T; ++t) " + name + "[t] = 1.0f / " + operand(d) + ";");
    } else {
      line("const vf " + name + " = 1.0f / " + operand(d) + ";");
    }
  }
}

void region_emitter::element_values(const std::vector<int>& roots, bool second) {
  here_.assign(r_.exprs.size(), "");
  in_elements_ = true;
  second_ = second;
  std::vector<int> count(r_.exprs.size(), 0);
  std::vector<bool> needed(r_.exprs.size(), false);
  for (int e : roots) {
    needed[static_cast<size_t>(e)] = true;
    ++count[static_cast<size_t>(e)];
  }
  const auto from_row = [&](int e) { return kept_.count(e) && current_pass_ > plan_.ready[static_cast<size_t>(e)] + 1; };
  for (size_t i = r_.exprs.size(); i-- > 0;) {
    const int e = static_cast<int>(i);
    if (!needed[i] || level(e) != 3 || from_row(e)) continue;
    for (int a : r_.exprs[i].args) {
      needed[static_cast<size_t>(a)] = true;
      ++count[static_cast<size_t>(a)];
    }
  }
  for (size_t i = 0; i < r_.exprs.size(); ++i) {
    const int e = static_cast<int>(i);
    const auto& x = at(e);
    if (!needed[i] || level(e) != 3 || x.kind == expr_kind::reduce) continue;
    std::string text;
    const bool keeps = kept_.count(e) && current_pass_ == plan_.ready[i] + 1;
    if (from_row(e)) text = "load(row" + std::to_string(e) + " + " + row_index() + ", lanes)";
    else text = build(e);
    const bool simple = (x.kind == expr_kind::op || x.kind == expr_kind::load || from_row(e)) && text.size() < 70;
    if (count[i] == 1 && simple && !keeps && x.kind != expr_kind::scan && !(x.kind == expr_kind::op && expensive.count(x.op))) {
      here_[i] = text;
      continue;
    }
    const std::string name = "v" + std::to_string(e);
    line("const " + lane_type(x.dtype) + " " + name + " = " + text + ";");
    here_[i] = name;
    if (keeps) line("store(row" + std::to_string(e) + " + " + row_index() + ", " + name + ", lanes);");
  }
}

std::string region_emitter::row_index() const {
  std::string s;
  int64_t stride = extent(vec_);
  s = "i";
  for (size_t k = inner_.size(); k-- > 0;) {
    s = std::to_string(stride) + " * " + var(inner_[k]) + " + " + s;
    stride *= extent(inner_[k]);
  }
  return s;
}

std::string region_emitter::position_type(int e) const {
  const auto value = lane_type(at(at(e).args[0]).dtype);
  return "position<" + value + ", " + (value == "vd" || value == "vl" ? "vl" : "vi") + ">";
}

std::string region_emitter::identity(int e) const {
  const auto& x = at(e);
  if (x.op == "sum") return constant(0, x.dtype, true);
  if (x.op == "prod") return constant(1, x.dtype, true);
  const bool top = x.op == "max" || x.op == "argmax";
  const auto type = is_arg(e) ? at(x.args[0]).dtype : x.dtype;
  std::string value;
  if (is_floating(type)) value = constant(top ? -INFINITY : INFINITY, type, true);
  else value = std::string("splat(std::numeric_limits<") + (type == dtype::int64 ? "int64_t" : "int32_t") + ">::" + (top ? "min" : "max") + "())";
  return is_arg(e) ? position_type(e) + "{" + value + ", {}}" : value;
}

void region_emitter::line(const std::string& s) {
  if (s.empty()) {
    out_ << "\n";
    return;
  }
  out_ << std::string(static_cast<size_t>(s[0] == '#' ? 0 : indent_), ' ') << s << "\n";
}

} // namespace pragma::synthesis
