// Element-wise operators and activations. Formulas are Torch's own (aten/src/ATen/native documentation of each function);
// where a cheaper form of equal accuracy exists it is used and said.
#include "synthesis/lower/lower.hpp"

#include <cmath>
#include <limits>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

dtype compute_type(const op_call& c) { return c.result().dtype; }

/// The type in which a comparison happens: the tensors', or float when an integer tensor meets a fraction.
dtype comparison_type(const op_call& c, operation op) {
  dtype type = c.b.at(c.tensor("self")).dtype;
  if (c.is_tensor("other")) {
    type = promoted(type, c.b.at(c.tensor("other")).dtype);
    return accepts(traits(op).types, type) ? type : dtype::int32; // an order of truth values: that of their counts
  }
  const double other = c.number("other");
  if (!is_floating(type) && other != std::floor(other)) return dtype::float32;
  if (type == dtype::boolean) return dtype::int64;
  return type;
}

rule unary(operation op) {
  return [op](const op_call& c) -> results { return {c.b.unary(op, c.operand("self", compute_type(c)))}; };
}

rule comparison(operation op) {
  return [op](const op_call& c) -> results {
    const auto type = comparison_type(c, op);
    return {c.b.compare(op, c.operand("self", type), c.operand("other", type))};
  };
}

/// self op (alpha * other)
rule additive(operation op, bool reversed) {
  return [op, reversed](const op_call& c) -> results {
    const auto type = compute_type(c);
    int a = c.operand("self", type), b = c.operand("other", type);
    const double alpha = c.number("alpha", 1);
    if (reversed) {
      if (alpha != 1) a = c.b.mul(a, c.b.constant(alpha, type));
      return {c.b.pointwise(op, type, {b, a})};
    }
    if (alpha != 1) b = c.b.mul(b, c.b.constant(alpha, type));
    // A sum of truth values is true where one of them is.
    return {c.b.pointwise(type == dtype::boolean && op == operation::add ? operation::bit_or : op, type, {a, b})};
  };
}

int clamp(node_builder& b, int x, double low, double high) {
  // The order of arguments keeps NaN (docs/synthesis.md, "max and min").
  if (!std::isinf(low)) x = b.pointwise(operation::max_or_second, b.at(x).dtype, {b.number(low, x), x});
  if (!std::isinf(high)) x = b.pointwise(operation::min_or_second, b.at(x).dtype, {b.number(high, x), x});
  return x;
}

int powered(node_builder& b, int x, double exponent) {
  const auto type = b.at(x).dtype;
  if (exponent == 0) return b.constant(1, type, b.at(x).shape);
  if (exponent == 1) return x;
  if (exponent == 0.5 && is_floating(type)) return b.unary(operation::sqrt, x);
  if (exponent == -0.5) return b.unary(operation::rsqrt, x);
  if (exponent == -1) return b.div(b.number(1, x), x);
  if (exponent == 2) return b.mul(x, x);
  if (exponent == 3) return b.mul(b.mul(x, x), x);
  if (exponent == -2) return b.div(b.number(1, x), b.mul(x, x));
  if (exponent == std::floor(exponent) && exponent > 0 && exponent <= 16) {
    const int half = powered(b, x, std::floor(exponent / 2));
    const int square = b.mul(half, half);
    return std::fmod(exponent, 2) == 0 ? square : b.mul(square, x);
  }
  return b.pointwise(operation::pow, type, {x, b.number(exponent, x)});
}

int softplus(node_builder& b, int x, double beta, double threshold) {
  // log(1 + exp(z)) = max(z, 0) + log1p(exp(-|z|)): exp cannot overflow and log1p is needed on [0, 1] only.
  const int z = beta == 1 ? x : b.mul(x, b.number(beta, x));
  const int tail = b.unary(operation::log1p_unit, b.unary(operation::exp_nonpositive, b.unary(operation::neg, b.unary(operation::abs, z))));
  int soft = b.add2(b.pointwise(operation::max_or_second, b.at(x).dtype, {b.number(0, x), z}), tail);
  if (beta != 1) soft = b.mul(soft, b.number(1 / beta, x));
  return b.select(b.compare(operation::greater, z, b.number(threshold, x)), x, soft);
}

int elu(node_builder& b, int x, double alpha, double scale, double input_scale) {
  const int z = input_scale == 1 ? x : b.mul(x, b.number(input_scale, x));
  // exp(z) - 1 would be off by half a rounding of 1: all of it where z is tiny. Torch computes expm1.
  const int low = b.mul(b.unary(operation::expm1_nonpositive, z), b.number(alpha * scale, x));
  const int high = scale == 1 ? x : b.mul(x, b.number(scale, x));
  return b.select(b.compare(operation::greater, x, b.number(0, x)), high, low);
}

int gelu(node_builder& b, int x, bool by_tanh) {
  const int half = b.mul(x, b.number(0.5, x));
  int inner;
  if (by_tanh) {
    const int cube = b.mul(b.mul(x, x), x);
    const int poly = b.add2(x, b.mul(cube, b.number(0.044715, x)));
    inner = b.unary(operation::tanh, b.mul(poly, b.number(0.79788456080286535588, x)));
  } else {
    inner = b.unary(operation::erf, b.mul(x, b.number(0.70710678118654752440, x)));
  }
  return b.add2(half, b.mul(half, inner));
}

int logical(const op_call& c, const char* name) {
  return c.b.convert(c.tensor(name), dtype::boolean);
}

rule bitwise(operation op) {
  return [op](const op_call& c) -> results {
    const auto type = compute_type(c);
    return {c.b.pointwise(op, type, {c.operand("self", type), c.operand("other", type)})};
  };
}

/// maximum and its like; of truth values one of them, or both.
rule extreme(operation op) {
  return [op](const op_call& c) -> results {
    const auto type = compute_type(c);
    return {c.b.extreme(op, c.operand("self", type), c.operand("other", type))};
  };
}

rule logical2(operation op) {
  return [op](const op_call& c) -> results {
    return {c.b.pointwise(op, dtype::boolean, {logical(c, "self"), logical(c, "other")})};
  };
}

/// x of the compute type, for activations
int self(const op_call& c) { return c.operand("self", compute_type(c)); }

results divide(const op_call& c) {
  const auto type = compute_type(c);
  const int a = c.operand("self", type), b = c.operand("other", type);
  const auto mode = c.has("rounding_mode") ? c.node().args.at("rounding_mode").get<std::string>() : "";
  if (mode.empty()) return {c.b.div(a, b)};
  if (!is_floating(type)) return {c.b.pointwise(mode == "floor" ? operation::floor_divide : operation::trunc_divide, type, {a, b})};
  return {c.b.unary(mode == "floor" ? operation::floor : operation::trunc, c.b.div(a, b))};
}

/// To so many decimals, as Torch has it: scaled, rounded, and scaled back.
results rounded(const op_call& c) {
  const int x = self(c);
  const double decimals = c.number("decimals", 0);
  if (decimals == 0) return {c.b.unary(operation::round, x)};
  const int scale = c.b.number(std::pow(10.0, std::fabs(decimals)), x);
  const int whole = c.b.unary(operation::round, decimals > 0 ? c.b.mul(x, scale) : c.b.div(x, scale));
  return {decimals > 0 ? c.b.div(whole, scale) : c.b.mul(whole, scale)};
}

/// log(exp(a) + exp(b)) = max(a, b) + log1p(exp(-|a - b|)); two equal infinities are their sum.
results log_of_sum(const op_call& c) {
  const auto type = compute_type(c);
  if (!is_floating(type)) throw not_lowered{"of complex numbers"};
  const int a = c.operand("self", type), b = c.operand("other", type);
  const int most = c.b.extreme(operation::maximum, a, b);
  const int distance = c.b.unary(operation::neg, c.b.unary(operation::abs, c.b.sub(a, b)));
  const int sum = c.b.add2(most, c.b.unary(operation::log1p_unit, c.b.unary(operation::exp_nonpositive, distance)));
  const int infinite = c.b.compare(operation::equal, c.b.unary(operation::abs, a), c.b.number(INFINITY, a));
  return {c.b.select(c.b.pointwise(operation::bit_and, dtype::boolean, {infinite, c.b.compare(operation::equal, a, b)}), a, sum)};
}

/// Numbers instead of NaN and the infinities: by default 0 and the ends of the type.
results numbers_only(const op_call& c) {
  const int x = self(c);
  const auto type = compute_type(c);
  if (!is_floating(type)) return {x};
  if (is_half(c.b.at(x).held_as) && !(c.has("posinf") && c.has("neginf"))) throw not_lowered{"the ends of a half type"};
  const double most = type == dtype::float64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const int finite = c.b.select(c.b.compare(operation::equal, x, c.b.number(INFINITY, x)), c.b.number(c.number("posinf", most), x),
                                c.b.select(c.b.compare(operation::equal, x, c.b.number(-INFINITY, x)), c.b.number(c.number("neginf", -most), x), x));
  return {c.b.select(c.b.compare(operation::not_equal, x, x), c.b.number(c.number("nan", 0), x), finite)};
}

/// Bits moved by a number that is known: a product or a quotient by a power of two, which rounds down as the bits beyond do.
rule shifted(bool left) {
  return [left](const op_call& c) -> results {
    const auto type = compute_type(c);
    const double by = c.is_tensor("other") ? -1 : c.number("other");
    if (is_floating(type) || type == dtype::boolean || by < 0 || by > 30) throw not_lowered{"bits moved by a tensor, or out of the type"};
    const int x = c.operand("self", type);
    const double width = 8.0 * static_cast<double>(size_of(type)) - (type == dtype::uint8 ? 0 : 1);
    if (by >= width) throw not_lowered{"bits moved out of the type"};
    return {c.b.pointwise(left ? operation::mul : operation::floor_divide, type, {x, c.b.constant(std::exp2(by), type)})};
  };
}

/// To the nearest of the levels between quant_min and quant_max, and back; NaN goes to the lowest, as in Torch.
results fake_quantised(const op_call& c) {
  const int x = self(c);
  if (c.is_tensor("scale") || c.b.at(x).dtype != dtype::float32) throw not_lowered{"levels that a tensor gives, or another type than float32"};
  const auto scale = static_cast<float>(c.number("scale"));
  const double zero = c.number("zero_point"), low = c.number("quant_min"), high = c.number("quant_max");
  const int level = c.b.add2(c.b.unary(operation::round, c.b.mul(x, c.b.number(1 / scale, x))), c.b.number(zero, x));
  const int bounded = c.b.pointwise(operation::max_or_second, dtype::float32, {level, c.b.number(low, x)});
  return {c.b.mul(c.b.sub(clamp(c.b, bounded, -INFINITY, high), c.b.number(zero, x)), c.b.number(scale, x)), -1};
}

results clamp_rule(const op_call& c) {
  const auto type = compute_type(c);
  int x = c.operand("self", type);
  for (const char* bound : {"min", "max"}) {
    if (!c.has(bound)) continue;
    const bool low = std::string(bound) == "min";
    if (c.is_tensor(bound)) x = c.b.extreme(low ? operation::maximum : operation::minimum, x, c.operand(bound, type));
    else x = clamp(c.b, x, low ? c.number("min") : -INFINITY, low ? INFINITY : c.number("max"));
  }
  return {x};
}

} // namespace

void add_pointwise_rules(rule_table& t) {
  using o = operation; // these have Torch's own names
  for (const o op : {o::exp, o::log, o::log1p, o::expm1, o::log2, o::log10, o::exp2, o::sqrt, o::rsqrt, o::sin,
                     o::cos, o::tan, o::asin, o::acos, o::atan, o::sinh, o::cosh, o::asinh, o::acosh, o::atanh,
                     o::tanh, o::sigmoid, o::erf, o::erfc, o::floor, o::ceil, o::trunc, o::abs, o::neg,
                     o::sign, o::lgamma, o::frac})
    t["aten." + std::string(name_of(op))] = unary(op);
  t["aten.round"] = rounded;
  t["aten.logaddexp"] = log_of_sum;
  t["aten.nan_to_num"] = numbers_only;
  t["aten.fake_quantize_per_tensor_affine_cachemask"] = fake_quantised;
  for (const char* op : {"__lshift__", "bitwise_left_shift"}) t[std::string("aten.") + op] = shifted(true);
  for (const char* op : {"__rshift__", "bitwise_right_shift"}) t[std::string("aten.") + op] = shifted(false);
  t["aten.rrelu_with_noise"] = [](const op_call& c) -> results {
    if (c.flag("training")) throw not_lowered{"in training mode"};
    const int x = self(c);
    return {c.b.select(c.b.compare(operation::greater, x, c.b.number(0, x)), x, c.b.mul(x, c.b.number((c.number("lower") + c.number("upper")) / 2, x)))};
  };
  t["aten.sgn"] = unary(operation::sign);
  t["aten.special_erf"] = unary(operation::erf);
  t["aten.special_expm1"] = unary(operation::expm1);
  t["aten.square"] = [](const op_call& c) -> results { return {c.b.mul(self(c), self(c))}; };
  t["aten.positive"] = [](const op_call& c) -> results { return {self(c)}; };
  t["aten.reciprocal"] = [](const op_call& c) -> results { return {c.b.div(c.b.constant(1, compute_type(c)), self(c))}; };
  for (const o op : {o::equal, o::not_equal, o::less, o::less_equal, o::greater, o::greater_equal}) t["aten." + std::string(name_of(op))] = comparison(op);
  t["aten.add"] = additive(operation::add, false);
  t["aten.sub"] = additive(operation::sub, false);
  t["aten.rsub"] = additive(operation::sub, true);
  t["aten.mul"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    const int a = c.operand("self", type), b = c.operand("other", type);
    return {type == dtype::boolean ? c.b.pointwise(operation::bit_and, type, {a, b}) : c.b.mul(a, b)};
  };
  t["aten.div"] = divide;
  t["aten.true_divide"] = divide;
  t["aten.floor_divide"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    const int a = c.operand("self", type), b = c.operand("other", type);
    if (is_floating(type)) return {c.b.unary(operation::floor, c.b.div(a, b))};
    return {c.b.pointwise(operation::floor_divide, type, {a, b})};
  };
  t["aten.remainder"] = bitwise(operation::remainder);
  t["aten.fmod"] = bitwise(operation::fmod);
  t["aten.atan2"] = bitwise(operation::atan2);
  t["aten.hypot"] = bitwise(operation::hypot);
  t["aten.maximum"] = extreme(operation::maximum);
  t["aten.minimum"] = extreme(operation::minimum);
  t["aten.fmax"] = extreme(operation::fmax);
  t["aten.fmin"] = extreme(operation::fmin);
  t["aten.bitwise_and"] = bitwise(operation::bit_and);
  t["aten.bitwise_or"] = bitwise(operation::bit_or);
  t["aten.bitwise_xor"] = bitwise(operation::bit_xor);
  t["aten.logical_and"] = logical2(operation::bit_and);
  t["aten.logical_or"] = logical2(operation::bit_or);
  t["aten.logical_xor"] = logical2(operation::bit_xor);
  t["aten.logical_not"] = [](const op_call& c) -> results { return {c.b.pointwise(operation::bit_not, dtype::boolean, {logical(c, "self")})}; };
  t["aten.bitwise_not"] = unary(operation::bit_not);
  t["aten.isnan"] = [](const op_call& c) -> results { const int x = c.tensor("self"); return {c.b.compare(operation::not_equal, x, x)}; };
  t["aten.isinf"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.compare(operation::equal, c.b.unary(operation::abs, x), c.b.number(INFINITY, x))};
  };
  t["aten.isfinite"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.compare(operation::less, c.b.unary(operation::abs, x), c.b.number(INFINITY, x))};
  };
  t["aten.pow"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    if (c.is_tensor("exponent")) {
      return {c.b.pointwise(operation::pow, type, {c.operand("self", type), c.operand("exponent", type)})};
    }
    return {powered(c.b, c.operand("self", type), c.number("exponent"))};
  };
  t["aten.where"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    return {c.b.select(logical(c, "condition"), c.operand("self", type), c.operand("other", type))};
  };
  t["aten.masked_fill"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    return {c.b.select(logical(c, "mask"), c.operand("value", type), c.operand("self", type))};
  };
  t["aten.clamp"] = clamp_rule;
  t["aten.clamp_min"] = clamp_rule;
  t["aten.clamp_max"] = clamp_rule;
  t["aten.hardtanh"] = [](const op_call& c) -> results { return {clamp(c.b, self(c), c.number("min_val", -1), c.number("max_val", 1))}; };
  t["aten.relu"] = [](const op_call& c) -> results { return {clamp(c.b, self(c), 0, INFINITY)}; };
  t["aten.relu6"] = [](const op_call& c) -> results { return {clamp(c.b, self(c), 0, 6)}; };
  t["aten.leaky_relu"] = [](const op_call& c) -> results {
    const int x = self(c);
    const double slope = c.number("negative_slope", 0.01);
    const int low = c.b.mul(x, c.b.number(slope, x));
    if (slope > 0 && slope <= 1) return {c.b.pointwise(operation::max_or_second, c.b.at(x).dtype, {low, x})};
    return {c.b.select(c.b.compare(operation::greater, x, c.b.number(0, x)), x, low)};
  };
  t["aten.prelu"] = [](const op_call& c) -> results {
    const int x = self(c);
    int w = c.tensor("weight");
    const auto shape = c.b.at(x).shape;
    std::vector<int64_t> to(shape.size(), 1);
    if (c.b.at(w).elements() > 1) to.at(1) = c.b.at(w).elements();
    w = c.b.reshape(w, to);
    return {c.b.select(c.b.compare(operation::greater, x, c.b.number(0, x)), x, c.b.mul(x, w))};
  };
  t["aten._prelu_kernel"] = [](const op_call& c) -> results {
    const int x = self(c);
    return {c.b.select(c.b.compare(operation::greater, x, c.b.number(0, x)), x, c.b.mul(x, c.tensor("weight")))};
  };
  t["aten.heaviside"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    const int x = c.operand("self", type), zero = c.b.number(0, x);
    const int step = c.b.select(c.b.compare(operation::greater, x, zero), c.b.number(1, x), zero); // of NaN 0, as in Torch
    return {c.b.select(c.b.compare(operation::equal, x, zero), c.operand("values", type), step)};
  };
  t["aten.sinc"] = [](const op_call& c) -> results {
    const int x = self(c), angle = c.b.mul(x, c.b.number(3.14159265358979323846, x));
    return {c.b.select(c.b.compare(operation::equal, x, c.b.number(0, x)), c.b.number(1, x), c.b.div(c.b.unary(operation::sin, angle), angle))};
  };
  t["aten.threshold"] = [](const op_call& c) -> results {
    const int x = self(c);
    return {c.b.select(c.b.compare(operation::less_equal, x, c.b.number(c.number("threshold"), x)), c.b.number(c.number("value"), x), x)};
  };
  t["aten.elu"] = [](const op_call& c) -> results {
    return {elu(c.b, self(c), c.number("alpha", 1), c.number("scale", 1), c.number("input_scale", 1))};
  };
  t["aten.celu"] = [](const op_call& c) -> results {
    const double alpha = c.number("alpha", 1);
    return {elu(c.b, self(c), alpha, 1, 1 / alpha)};
  };
  t["aten.selu"] = [](const op_call& c) -> results { return {elu(c.b, self(c), 1.6732632423543772, 1.0507009873554805, 1)}; };
  t["aten.gelu"] = [](const op_call& c) -> results {
    return {gelu(c.b, self(c), c.has("approximate") && c.node().args.at("approximate") == "tanh")};
  };
  t["aten.silu"] = [](const op_call& c) -> results { return {c.b.mul(self(c), c.b.unary(operation::sigmoid, self(c)))}; };
  t["aten.softplus"] = [](const op_call& c) -> results { return {softplus(c.b, self(c), c.number("beta", 1), c.number("threshold", 20))}; };
  t["aten.mish"] = [](const op_call& c) -> results {
    // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2): one exponential; for x > 20 the quotient is 1 in every dtype.
    const int x = self(c), e = c.b.unary(operation::exp, clamp(c.b, x, -INFINITY, 20));
    const int n = c.b.mul(e, c.b.add2(e, c.b.number(2, x)));
    return {c.b.mul(x, c.b.div(n, c.b.add2(n, c.b.number(2, x))))};
  };
  t["aten.log_sigmoid_forward"] = [](const op_call& c) -> results {
    const int x = self(c); // log(sigmoid(x)) = min(x, 0) - log1p(exp(-|x|))
    const int tail = c.b.unary(operation::log1p_unit, c.b.unary(operation::exp_nonpositive, c.b.unary(operation::neg, c.b.unary(operation::abs, x))));
    return {c.b.sub(clamp(c.b, x, -INFINITY, 0), tail), -1};
  };
  t["aten.hardsigmoid"] = [](const op_call& c) -> results {
    const int x = self(c);
    return {c.b.mul(clamp(c.b, c.b.add2(x, c.b.number(3, x)), 0, 6), c.b.number(1.0 / 6, x))};
  };
  t["aten.hardswish"] = [](const op_call& c) -> results {
    const int x = self(c);
    return {c.b.mul(x, c.b.mul(clamp(c.b, c.b.add2(x, c.b.number(3, x)), 0, 6), c.b.number(1.0 / 6, x)))};
  };
  t["aten.hardshrink"] = [](const op_call& c) -> results {
    const int x = self(c);
    return {c.b.select(c.b.compare(operation::less_equal, c.b.unary(operation::abs, x), c.b.number(c.number("lambd", 0.5), x)), c.b.number(0, x), x)};
  };
  t["aten.softshrink"] = [](const op_call& c) -> results {
    const int x = self(c);
    const int l = c.b.number(c.number("lambd", 0.5), x), zero = c.b.number(0, x);
    const int low = c.b.select(c.b.compare(operation::less, x, c.b.unary(operation::neg, l)), c.b.add2(x, l), zero);
    return {c.b.select(c.b.compare(operation::greater, x, l), c.b.sub(x, l), low)};
  };
  t["aten.logit"] = [](const op_call& c) -> results {
    int x = self(c);
    if (c.has("eps")) x = clamp(c.b, x, c.number("eps"), 1 - c.number("eps"));
    return {c.b.unary(operation::log, c.b.div(x, c.b.sub(c.b.number(1, x), x)))};
  };
  t["aten.xlogy"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    const int x = c.operand("self", type), y = c.operand("other", type);
    const int zero = c.b.constant(0, type);
    const int plain = c.b.select(c.b.compare(operation::equal, x, zero), zero, c.b.mul(x, c.b.unary(operation::log, y)));
    return {c.b.select(c.b.compare(operation::not_equal, y, y), y, plain)};
  };
  t["aten.special_xlogy"] = t["aten.xlogy"];
  t["aten.lerp"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    const int a = c.operand("self", type), w = c.operand("weight", type);
    return {c.b.add2(a, c.b.mul(w, c.b.sub(c.operand("end", type), a)))};
  };
  t["aten.addcmul"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    int p = c.b.mul(c.operand("tensor1", type), c.operand("tensor2", type));
    if (c.number("value", 1) != 1) p = c.b.mul(p, c.b.constant(c.number("value", 1), type));
    return {c.b.add2(c.operand("self", type), p)};
  };
  t["aten.addcdiv"] = [](const op_call& c) -> results {
    const auto type = compute_type(c);
    int p = c.b.div(c.operand("tensor1", type), c.operand("tensor2", type));
    if (c.number("value", 1) != 1) p = c.b.mul(p, c.b.constant(c.number("value", 1), type));
    return {c.b.add2(c.operand("self", type), p)};
  };
  t["aten._to_copy"] = [](const op_call& c) -> results { return {c.b.convert(c.tensor("self"), compute_type(c))}; };
  t["aten.to"] = t["aten._to_copy"];
  t["aten.glu"] = [](const op_call& c) -> results {
    const int x = self(c);
    const int64_t dim = c.dim("dim", x), half = c.b.at(x).shape[static_cast<size_t>(dim)] / 2;
    return {c.b.mul(c.b.slice(x, dim, 0, 1, half), c.b.unary(operation::sigmoid, c.b.slice(x, dim, half, 1, half)))};
  };
}

} // namespace pragma::synthesis
