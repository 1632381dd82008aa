// What a program of primitives computes, by its definition: element by element, each operation rounded to its type. For tests of
// rewriting; of inputs, constants, places, operators of elements, views and reshapes.
#pragma once

#include "synthesis/lower/lower.hpp"

#include <cmath>
#include <stdexcept>

namespace pragma::synthesis::test {

/// The value that a double becomes in memory of this type; whole numbers wrap.
inline double stored_as(double v, dtype type) {
  switch (type) {
    case dtype::float64: return v;
    case dtype::float32: return static_cast<double>(static_cast<float>(v));
    case dtype::boolean: return v != 0;
    default: break;
  }
  const auto whole = std::isfinite(v) ? static_cast<int64_t>(v) : 0;
  switch (type) {
    case dtype::int32: return static_cast<int32_t>(whole);
    case dtype::int16: return static_cast<int16_t>(whole);
    case dtype::int8: return static_cast<int8_t>(whole);
    case dtype::uint8: return static_cast<uint8_t>(whole);
    default: return static_cast<double>(whole);
  }
}

inline double applied(operation op, const std::vector<double>& x) {
  switch (op) {
    case operation::add: return x[0] + x[1];
    case operation::sub: return x[0] - x[1];
    case operation::mul: return x[0] * x[1];
    case operation::div: return x[0] / x[1];
    case operation::neg: return -x[0];
    case operation::abs: return std::fabs(x[0]);
    case operation::exp: return std::exp(x[0]);
    case operation::floor: return std::floor(x[0]);
    case operation::ceil: return std::ceil(x[0]);
    case operation::trunc: return std::trunc(x[0]);
    case operation::round: return std::nearbyint(x[0]);
    case operation::max_or_second: return x[0] > x[1] ? x[0] : x[1];
    case operation::min_or_second: return x[0] < x[1] ? x[0] : x[1];
    case operation::equal: return x[0] == x[1];
    case operation::not_equal: return x[0] != x[1];
    case operation::less: return x[0] < x[1];
    case operation::greater: return x[0] > x[1];
    case operation::bit_not: return x[0] == 0; // of truth values
    case operation::select: return x[0] != 0 ? x[1] : x[2];
    case operation::convert: return x[0];
    default: throw std::logic_error("evaluate.hpp does not know " + std::string(name_of(op)));
  }
}

/// Elements of node `n` in row-major order; leaves have `inputs[buffer]`. Float32 sums, products and quotients of floats in double are rounded
/// once more without harm (a double has more than twice the digits).
inline std::vector<double> evaluate(const tensor_program& p, int n, const std::vector<std::vector<double>>& inputs) {
  const auto& x = p.nodes[static_cast<size_t>(n)];
  const auto count = static_cast<size_t>(x.elements());
  if (x.kind == node_kind::leaf) return inputs[static_cast<size_t>(x.buffer)];
  if (x.kind == node_kind::constant) return std::vector<double>(count, stored_as(x.value, x.dtype));
  std::vector<std::vector<double>> args;
  for (int a : x.args) args.push_back(evaluate(p, a, inputs));
  if (x.kind == node_kind::reshape) return args[0];
  if (x.kind != node_kind::view && x.kind != node_kind::pointwise && x.kind != node_kind::index) throw std::logic_error("evaluate.hpp knows no such primitive");
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> index(x.shape.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t d = x.shape.size(); d-- > 0; rest /= x.shape[d]) index[d] = rest % x.shape[d];
    const auto element = [&](size_t arg) {
      const auto& from = p.nodes[static_cast<size_t>(x.args[arg])].shape;
      int64_t place = 0;
      for (size_t d = 0; d < from.size(); ++d) {
        int64_t k = 0;
        if (x.kind == node_kind::view) k = x.map[d].offset + (x.map[d].out_dim < 0 ? 0 : x.map[d].step * index[static_cast<size_t>(x.map[d].out_dim)]);
        else k = from[d] == 1 ? 0 : index[x.shape.size() - from.size() + d];
        place = place * from[d] + k;
      }
      return args[arg].at(static_cast<size_t>(place));
    };
    if (x.kind == node_kind::index) {
      out[i] = static_cast<double>(index[static_cast<size_t>(x.dims[0])]);
      continue;
    }
    std::vector<double> values;
    for (size_t a = 0; a < args.size(); ++a) values.push_back(element(a));
    out[i] = x.kind == node_kind::view ? values[0] : stored_as(applied(x.op, values), x.dtype);
  }
  return out;
}

} // namespace pragma::synthesis::test
