#include "synthesis/triton/values.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

bool is_atom(const std::string& s) {
  int depth = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '(' || s[i] == '[') ++depth;
    else if (s[i] == ')' || s[i] == ']') --depth;
    else if (depth == 0 && (s[i] == ' ' || s[i] == '~')) return false;
  }
  return true;
}

std::string bracketed(const std::string& s) { return is_atom(s) && s[0] != '-' ? s : "(" + s + ")"; }

constexpr size_t longest_inline = 48; ///< characters of a value that has no line of its own

} // namespace

triton_values::triton_values(const loop_program& program, const region& r) : p_(program), r_(r) {
  axes_.resize(r.axes.size());
  names_.resize(r.exprs.size());
  fixed_.assign(r.exprs.size(), false);
  uses_.assign(r.exprs.size(), 0);
  name_depth_.assign(r.exprs.size(), 0);
  std::vector<bool> live(r.exprs.size(), false);
  for (const auto& s : r.stores) {
    live[static_cast<size_t>(s.value)] = true;
    ++uses_[static_cast<size_t>(s.value)];
  }
  for (size_t i = r.exprs.size(); i-- > 0;)
    if (live[i])
      for (int a : r.exprs[i].args) {
        live[static_cast<size_t>(a)] = true;
        ++uses_[static_cast<size_t>(a)];
      }
}

void triton_values::bind_axis(int axis, const std::string& text, const std::string& mask) {
  axes_[static_cast<size_t>(axis)] = {text, mask, true};
  forget(1u << axis);
}

void triton_values::bind(int e, const std::string& name) {
  names_[static_cast<size_t>(e)] = name;
  fixed_[static_cast<size_t>(e)] = true;
}

void triton_values::forget(uint32_t axes) {
  for (size_t i = 0; i < names_.size(); ++i)
    if (!fixed_[i] && (r_.exprs[i].axes & axes)) names_[i].clear();
}

void triton_values::close() {
  --depth_;
  for (size_t i = 0; i < names_.size(); ++i)
    if (!fixed_[i] && name_depth_[i] > depth_) names_[i].clear();
}

std::string triton_values::value(int e) {
  const auto i = static_cast<size_t>(e);
  const auto& x = at(e);
  if (!names_[i].empty()) return names_[i];
  if (x.kind == expr_kind::constant) return literal(x.value, x.dtype);
  const auto text = build(e);
  const bool simple = x.kind == expr_kind::index || (x.kind == expr_kind::op && uses_[i] < 2 && text.size() <= longest_inline);
  return simple ? text : named(e, text);
}

std::string triton_values::name_of(int e) {
  const auto& x = at(e);
  if (x.kind == expr_kind::constant || !names_[static_cast<size_t>(e)].empty()) return value(e);
  return named(e, build(e));
}

std::string triton_values::named(int e, const std::string& text) {
  const auto& x = at(e);
  std::string name = x.kind == expr_kind::load ? p_.buffers[static_cast<size_t>(x.buffer)].name + "_" : x.kind == expr_kind::op ? std::string(traits(x.op).name) : "at";
  name += std::to_string(e);
  // A value that is computed in several passes has a name in each, so that no loop carries it.
  if (const int before = defined_[name]++; before > 0) name += "_" + std::to_string(before + 1);
  line(name + " = " + text);
  names_[static_cast<size_t>(e)] = name;
  name_depth_[static_cast<size_t>(e)] = depth_;
  return name;
}

std::string triton_values::operand(int e) { return bracketed(value(e)); }

std::string triton_values::index(const index_form& f) const {
  std::string s;
  for (const auto& [a, c] : f.terms) {
    const auto& text = axes_[static_cast<size_t>(a)].text;
    const auto term = (std::abs(c) == 1 ? "" : std::to_string(std::abs(c)) + " * ") + bracketed(text);
    s += s.empty() ? (c < 0 ? "-" : "") + term : (c < 0 ? " - " : " + ") + term;
  }
  if (f.offset != 0 || s.empty()) s += s.empty() ? std::to_string(f.offset) : (f.offset < 0 ? " - " : " + ") + std::to_string(std::abs(f.offset));
  return s;
}

std::string triton_values::mask(uint32_t axes) const {
  std::vector<std::string> parts;
  for (size_t a = 0; a < axes_.size(); ++a)
    if ((axes & (1u << a)) && !axes_[a].mask.empty() && std::find(parts.begin(), parts.end(), axes_[a].mask) == parts.end()) parts.push_back(axes_[a].mask);
  if (parts.size() == 1) return parts[0];
  std::string s;
  for (const auto& part : parts) s += (s.empty() ? "" : " & ") + bracketed(part);
  return s;
}

std::string triton_values::pointer(int buffer) {
  used_.insert(buffer);
  return p_.buffers[static_cast<size_t>(buffer)].name + "_ptr";
}

bool triton_values::outside(int e, const std::string& text) {
  const auto known = otherwise_.find(e);
  if (known != otherwise_.end()) return known->second == text;
  if (!names_[static_cast<size_t>(e)].empty()) return false;
  otherwise_[e] = text;
  return true;
}

void triton_values::scatter(const synthesis::store& s) {
  const auto& x = at(s.value);
  const auto what = value(x.args[0]), place = name_of(x.args[1]);
  auto where = index(s.at) + " + " + (s.step == 1 ? place : std::to_string(s.step) + " * " + place);
  uint32_t walked = at(x.args[1]).axes, all = 0;
  for (const auto& t : s.at.terms) walked |= 1u << t.first;
  for (size_t a = 0; a < axes_.size(); ++a) {
    if (!axes_[a].bound || !(at(s.value).axes & (1u << a))) continue; // what a row's reduction gave is placed once, though the row lies in a tile
    all |= 1u << a;
    if (!(walked & (1u << a))) where += " + 0 * " + bracketed(axes_[a].text); // one operation for each element of the tile
  }
  auto valid = "(" + place + " >= 0) & (" + place + " < " + std::to_string(s.limit) + ")";
  if (const auto m = mask(all); !m.empty()) valid = bracketed(m) + " & " + valid;
  const std::string join = s.join == operation::sum ? "add" : s.join == operation::max ? "max" : "min";
  line("tl.atomic_" + join + "(" + pointer(s.buffer) + " + " + where + ", " + what + ", mask=" + valid + ", sem=\"relaxed\")");
}

void triton_values::store(const synthesis::store& s) {
  if (s.scatters()) return scatter(s);
  uint32_t axes = 0;
  for (const auto& t : s.at.terms) axes |= 1u << t.first;
  const auto v = value(s.value);
  line(store_text(pointer(s.buffer), index(s.at), v, mask(axes)));
}

std::string triton_values::store_text(const std::string& pointer, const std::string& index, const std::string& value, const std::string& mask) const {
  const auto where = index == "0" ? pointer : index[0] == '-' ? pointer + " - " + index.substr(1) : pointer + " + " + index;
  return "tl.store(" + where + ", " + value + (mask.empty() ? "" : ", mask=" + mask) + ")";
}

std::string triton_values::load_text(const std::string& pointer, const std::string& index, const std::string& mask, const std::string& other) const {
  const auto where = index == "0" ? pointer : index[0] == '-' ? pointer + " - " + index.substr(1) : pointer + " + " + index;
  return "tl.load(" + where + (mask.empty() ? "" : ", mask=" + mask + ", other=" + other) + ")";
}

void triton_values::line(const std::string& text) {
  if (!text.empty()) out_ += std::string(static_cast<size_t>(depth_) * 4, ' ') + text;
  out_ += "\n";
}

uint32_t triton_values::masked_axes(int e) const {
  const auto& x = at(e);
  uint32_t axes = 0;
  for (const auto& t : x.at.terms) {
    // A window's guard varies with its output: what does not (a weight) exists everywhere, and may be one element.
    const int output = r_.axes[static_cast<size_t>(t.first)].guard.output_axis;
    if (output < 0 || x.at.coefficient(output) != 0) axes |= 1u << t.first;
  }
  if (!x.args.empty()) axes |= at(x.args[0]).axes; // the computed index may differ wherever its own axes do
  return axes;
}

std::string triton_values::load(int e) {
  const auto& x = at(e);
  auto where = index(x.at);
  if (!x.args.empty()) {
    const auto computed = operand(x.args[0]);
    where += " + " + (x.at.dynamic_step == 1 ? computed : std::to_string(x.at.dynamic_step) + " * " + computed);
  }
  const auto m = mask(masked_axes(e));
  const auto other = otherwise_.find(e);
  const auto text = load_text(pointer(x.buffer), where, m, other != otherwise_.end() ? other->second : literal(0, x.dtype == dtype::boolean ? dtype::int32 : x.dtype));
  return is_half(p_.buffers[static_cast<size_t>(x.buffer)].dtype) ? text + ".to(tl.float32)" : text;
}

std::string triton_values::build(int e) {
  const auto& x = at(e);
  switch (x.kind) {
    case expr_kind::constant: return literal(x.value, x.dtype);
    case expr_kind::load: return load(e);
    case expr_kind::index: return "tl.cast(" + index(x.at) + ", " + type_name(x.dtype) + ")";
    case expr_kind::op: return operation(e);
    case expr_kind::reduce:
    case expr_kind::scan:
    case expr_kind::anchor: break;
  }
  return std::string(traits(x.op).name) + std::to_string(e); // not bound: a name that nothing defines, which Python's compiler and the tests report
}

std::string triton_values::operation(int e) {
  const auto& x = at(e);
  const auto type = type_name(x.dtype);
  if (x.op == operation::convert) {
    if (at(x.args[0]).kind == expr_kind::constant) return "tl.full([], " + literal(at(x.args[0]).value, x.dtype) + ", " + type + ")";
    if (x.dtype == dtype::boolean) return operand(x.args[0]) + " != 0";
    return "tl.cast(" + value(x.args[0]) + ", " + type + ")";
  }
  bool constants = !x.args.empty();
  for (int a : x.args) constants = constants && at(a).kind == expr_kind::constant;
  std::vector<std::string> args;
  for (int a : x.args) args.push_back(operand(a));
  if (constants) args[0] = "tl.full([], " + literal(at(x.args[0]).value, at(x.args[0]).dtype) + ", " + type_name(at(x.args[0]).dtype) + ")";
  if (x.op == operation::select) {
    const auto text = "tl.where(" + value(x.args[0]) + ", " + value(x.args[1]) + ", " + value(x.args[2]) + ")";
    const bool both = at(x.args[1]).kind == expr_kind::constant && at(x.args[2]).kind == expr_kind::constant;
    return both && x.dtype != dtype::float32 ? "tl.cast(" + text + ", " + type + ")" : text; // literals alone would choose a type of their own
  }
  const auto& spelled = traits(x.op).triton;
  const std::string text(spelled.text);
  if (spelled.as == spelling::form::prefix) return text + args[0];
  if (x.op == operation::exact_div && at(x.args[1]).kind == expr_kind::constant) { // Torch's kernels for devices multiply with the reciprocal of a number
    const auto inverse = static_cast<double>(1 / static_cast<float>(at(x.args[1]).value));
    if (std::isfinite(inverse)) return args[0] + " * " + literal(inverse, x.dtype);
  }
  if (spelled.as == spelling::form::infix && x.op != operation::trunc_divide) return args[0] + " " + text + " " + args[1];
  // The remaining operators use an argument more than once.
  for (size_t i = 0; i < x.args.size(); ++i)
    if (!constants || i > 0) args[i] = name_of(x.args[i]);
  if (x.op == operation::max_or_second || x.op == operation::min_or_second) { // the second where either is NaN: a bound that comes first keeps NaN
    const bool first = at(x.args[0]).kind == expr_kind::constant;
    const std::string larger = x.op == operation::max_or_second ? " > " : " < ", smaller = x.op == operation::max_or_second ? " < " : " > ";
    return "tl.where(" + (first ? args[1] + smaller + args[0] : args[0] + larger + args[1]) + ", " + args[0] + ", " + args[1] + ")";
  }
  if (x.op == operation::maximum || x.op == operation::minimum) return text + "(" + args[0] + ", " + args[1] + (is_floating(x.dtype) ? ", propagate_nan=tl.PropagateNan.ALL)" : ")");
  if (x.op == operation::sign) return "tl.cast(tl.where(" + args[0] + " > 0, 1, tl.where(" + args[0] + " < 0, -1, 0)), " + type + ")";
  if (x.op == operation::frac) return args[0] + " - libdevice.trunc(" + args[0] + ")";
  if (spelled.as == spelling::form::infix) return args[0] + " " + text + " " + args[1];
  if (spelled.as == spelling::form::helper) helpers_.insert(text);
  std::string s = text + "(";
  for (size_t i = 0; i < args.size(); ++i) s += (i ? ", " : "") + args[i];
  return s + ")";
}

std::string triton_values::literal(double value, dtype type) {
  if (type == dtype::boolean) return value != 0 ? "True" : "False";
  if (!is_floating(type)) return std::to_string(static_cast<int64_t>(value));
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  char b[40];
  std::snprintf(b, sizeof b, type == dtype::float64 ? "%.17g" : "%.9g", value);
  std::string s = b;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

std::string triton_values::type_name(dtype type) {
  switch (type) {
    case dtype::float64: return "tl.float64";
    case dtype::int64: return "tl.int64";
    case dtype::int32: return "tl.int32";
    case dtype::int16: return "tl.int16";
    case dtype::int8: return "tl.int8";
    case dtype::uint8: return "tl.uint8";
    case dtype::boolean: return "tl.int1";
    case dtype::float16: return "tl.float16";
    case dtype::bfloat16: return "tl.bfloat16";
    default: return "tl.float32";
  }
}

std::string triton_values::torch_name(dtype type) { return type == dtype::boolean ? "torch.bool" : "torch" + type_name(type).substr(2); }

} // namespace pragma::synthesis
