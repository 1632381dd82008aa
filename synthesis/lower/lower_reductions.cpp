// Reductions, cumulative operators, softmax and norms over dimensions.
#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

int kept(const op_call& c, int reduced, const std::vector<int64_t>& dims) {
  return c.flag("keepdim") ? reduced : c.b.squeeze(reduced, dims);
}

/// Truth values as 0 and 1, which have an order.
int countable(node_builder& b, int x) { return b.at(x).dtype == dtype::boolean ? b.convert(x, dtype::int32) : x; }

rule plain(operation op) {
  return [op](const op_call& c) -> results {
    const int x = countable(c.b, c.operand("self", c.result().dtype));
    const auto dims = c.dims("dim", x);
    return {c.b.convert(kept(c, c.b.reduce(op, x, dims), dims), c.result().dtype)};
  };
}

results mean_rule(const op_call& c) {
  const int x = c.operand("self", c.result().dtype);
  const auto dims = c.dims("dim", x);
  return {kept(c, c.b.mean(x, dims), dims)};
}

/// max and min: of everything (self), along a dim (values, indices), or of two tensors
rule extreme(operation op) {
  return [op](const op_call& c) -> results {
    const int x = c.tensor("self");
    if (c.is_tensor("other")) {
      const auto type = c.result().dtype;
      return {c.b.extreme(op == operation::max ? operation::maximum : operation::minimum, c.b.convert(x, type), c.operand("other", type))};
    }
    const auto dims = c.has("dim") ? std::vector<int64_t>{c.dim("dim", x)} : c.dims("dim", x);
    if (c.b.at(x).shape.empty()) return {x, c.b.constant(0, dtype::int64)};
    const int ordered = countable(c.b, x);
    const int values = c.b.convert(kept(c, c.b.reduce(op, ordered, dims), dims), c.result().dtype);
    if (!c.has("dim")) return {values};
    return {values, kept(c, c.b.reduce(op == operation::max ? operation::argmax : operation::argmin, ordered, dims), dims)};
  };
}

rule position(operation op) {
  return [op](const op_call& c) -> results {
    const int x = countable(c.b, c.tensor("self"));
    if (c.b.at(x).shape.empty()) return {c.b.constant(0, dtype::int64)};
    if (!c.has("dim")) {
      const int flat = c.b.reshape(x, {c.b.at(x).elements()});
      return {c.b.reshape(c.b.reduce(op, flat, {0}), c.result().shape)};
    }
    const std::vector<int64_t> dims{c.dim("dim", x)};
    return {kept(c, c.b.reduce(op, x, dims), dims)};
  };
}

int norm_of(node_builder& b, int x, double p, const std::vector<int64_t>& dims) {
  if (p == 2) return b.unary(operation::sqrt, b.reduce(operation::sum, b.mul(x, x), dims));
  const int magnitude = b.unary(operation::abs, x);
  if (p == 1) return b.reduce(operation::sum, magnitude, dims);
  if (std::isinf(p)) return b.reduce(p > 0 ? operation::max : operation::min, magnitude, dims);
  if (p == 0) return b.reduce(operation::sum, b.convert(b.compare(operation::not_equal, x, b.number(0, x)), b.at(x).dtype), dims);
  const int powers = p == 3   ? b.mul(b.mul(magnitude, magnitude), magnitude)
                     : p == 4 ? b.mul(b.mul(x, x), b.mul(x, x))
                              : b.pointwise(operation::pow, b.at(x).dtype, {magnitude, b.number(p, x)});
  return b.pointwise(operation::pow, b.at(x).dtype, {b.reduce(operation::sum, powers, dims), b.number(1 / p, x)});
}

rule norm(const char* order) {
  return [order](const op_call& c) -> results {
    const int x = c.operand("self", c.result().dtype);
    const auto dims = c.dims("dim", x);
    return {kept(c, norm_of(c.b, x, c.number(order, 2), dims), dims)};
  };
}

double correction_of(const op_call& c) {
  if (c.has("correction")) return c.number("correction");
  return c.flag("unbiased", true) ? 1 : 0;
}

/// {variance, mean}, dims kept
std::pair<int, int> moments(const op_call& c, int x, const std::vector<int64_t>& dims, double correction) {
  const int mean = c.b.mean(x, dims);
  const int centered = c.b.sub(x, mean);
  const int squares = c.b.reduce(operation::sum, c.b.mul(centered, centered), dims);
  const double n = static_cast<double>(c.b.extent(x, dims)) - correction;
  return {c.b.div(squares, c.b.number(std::max(n, 0.0), x)), mean};
}

rule variance(bool root, bool with_mean) {
  return [root, with_mean](const op_call& c) -> results {
    const int x = c.operand("self", c.result().dtype);
    const auto dims = c.dims("dim", x);
    auto [var, mean] = moments(c, x, dims, correction_of(c));
    if (root) var = c.b.unary(operation::sqrt, var);
    if (!with_mean) return {kept(c, var, dims)};
    return {kept(c, var, dims), kept(c, mean, dims)};
  };
}

results softmax(const op_call& c, bool log) {
  const int x = c.operand("self", c.result().dtype);
  if (c.b.at(x).shape.empty()) return {c.b.number(log ? 0 : 1, x)};
  const std::vector<int64_t> dims{c.dim("dim", x)};
  const int shifted = c.b.sub(x, c.b.reduce(operation::peak, x, dims)); // a NaN is in the sum
  const int power = c.b.unary(operation::exp_nonpositive, shifted);
  const int total = c.b.reduce(operation::sum, power, dims);
  return {log ? c.b.sub(shifted, c.b.unary(operation::log, total)) : c.b.div(power, total)};
}

results logsumexp(const op_call& c) {
  const int x = c.operand("self", c.result().dtype);
  const auto dims = c.dims("dim", x);
  const int top = c.b.reduce(operation::peak, x, dims); // a NaN is in the sum
  // An infinite maximum must not be subtracted from itself.
  const int finite = c.b.compare(operation::less, c.b.unary(operation::abs, top), c.b.number(INFINITY, x));
  const int shift = c.b.select(finite, top, c.b.number(0, x));
  const int total = c.b.reduce(operation::sum, c.b.unary(operation::exp, c.b.sub(x, shift)), dims);
  return {kept(c, c.b.add2(shift, c.b.unary(operation::log, total)), dims)};
}

rule cumulative(operation op) {
  return [op](const op_call& c) -> results {
    const int x = c.operand("self", c.result().dtype);
    if (c.b.at(x).shape.empty()) return {x};
    return {c.b.scan(op, x, c.dim("dim", x))};
  };
}

/// The extreme so far, and the last place where it was met: a NaN stays, and the place follows to each further one.
rule extreme_so_far(operation op) {
  return [op](const op_call& c) -> results {
    const int x = countable(c.b, c.tensor("self"));
    const auto shape = c.b.at(x).shape;
    if (shape.empty()) return {c.tensor("self"), c.b.constant(0, dtype::int64)};
    const auto dim = c.dim("dim", x);
    const int so_far = c.b.scan(op, x, dim);
    int met = c.b.compare(op == operation::max ? operation::greater_equal : operation::less_equal, x, so_far);
    if (is_floating(c.b.at(x).dtype)) met = c.b.pointwise(operation::bit_or, dtype::boolean, {met, c.b.compare(operation::not_equal, x, x)});
    const int places = c.b.scan(operation::max, c.b.select(met, c.b.index(shape, dim), c.b.constant(0, dtype::int64)), dim);
    return {c.b.convert(so_far, c.result().dtype), places};
  };
}

/// Some of them (max) or all of them (min) are true.
rule boolean(operation op) {
  return [op](const op_call& c) -> results {
    const int x = c.b.convert(c.tensor("self"), dtype::boolean);
    const auto dims = c.dims("dim", x);
    const int ones = c.b.convert(x, dtype::int64);
    const int found = c.b.reduce(op, ones, dims);
    return {c.b.convert(kept(c, found, dims), c.result().dtype)};
  };
}

} // namespace

void add_reduction_rules(rule_table& t) {
  t["aten.sum"] = plain(operation::sum);
  t["aten.prod"] = plain(operation::prod);
  t["aten.amax"] = plain(operation::max);
  t["aten.amin"] = plain(operation::min);
  t["aten.mean"] = mean_rule;
  t["aten.nansum"] = [](const op_call& c) -> results {
    int x = c.operand("self", c.result().dtype);
    const auto dims = c.dims("dim", x);
    x = c.b.select(c.b.compare(operation::not_equal, x, x), c.b.number(0, x), x);
    return {kept(c, c.b.reduce(operation::sum, x, dims), dims)};
  };
  t["aten.max"] = extreme(operation::max);
  t["aten.min"] = extreme(operation::min);
  t["aten.argmax"] = position(operation::argmax);
  t["aten.argmin"] = position(operation::argmin);
  t["aten.norm"] = norm("p");
  t["aten.linalg_vector_norm"] = norm("ord");
  t["aten.frobenius_norm"] = norm("p");
  t["aten.var"] = variance(false, false);
  t["aten.std"] = variance(true, false);
  t["aten.var_mean"] = variance(false, true);
  t["aten.std_mean"] = variance(true, true);
  t["aten._softmax"] = [](const op_call& c) { return softmax(c, false); };
  t["aten.softmax"] = t["aten._softmax"];
  t["aten._log_softmax"] = [](const op_call& c) { return softmax(c, true); };
  t["aten.log_softmax"] = t["aten._log_softmax"];
  t["aten.logsumexp"] = logsumexp;
  t["aten.cumsum"] = cumulative(operation::sum);
  t["aten.cumprod"] = cumulative(operation::prod);
  t["aten.logcumsumexp"] = cumulative(operation::log_sum);
  t["aten.cummax"] = extreme_so_far(operation::max);
  t["aten.cummin"] = extreme_so_far(operation::min);
  t["aten.any"] = boolean(operation::max);
  t["aten.all"] = boolean(operation::min);
  t["aten.count_nonzero"] = [](const op_call& c) -> results {
    const int x = c.b.convert(c.b.convert(c.tensor("self"), dtype::boolean), dtype::int64);
    const auto dims = c.dims("dim", x);
    return {c.b.squeeze(c.b.reduce(operation::sum, x, dims), dims)};
  };
}

} // namespace pragma::synthesis
