// Pooling in one to three dimensions.
#include "synthesis/lower/lower.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

std::vector<int64_t> spread(std::vector<int64_t> values, size_t n, int64_t otherwise) {
  if (values.empty()) return std::vector<int64_t>(n, otherwise);
  if (values.size() == 1) return std::vector<int64_t>(n, values[0]);
  return values;
}

window_spec spec_of(const op_call& c, size_t n) {
  window_spec w;
  w.kernel = spread(c.integers("kernel_size"), n, 1);
  w.stride = c.integers("stride").empty() ? w.kernel : spread(c.integers("stride"), n, 1);
  w.padding = spread(c.integers("padding"), n, 0);
  w.dilation = spread(c.integers("dilation"), n, 1);
  return w;
}

rule max_pool(size_t n) {
  return [n](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto w = spec_of(c, n);
    return {c.b.window(operation::max, x, w, c.result().shape), c.b.window(operation::argmax, x, w, c.result().shape)};
  };
}

/// How many elements each output of an average counts, as a node that varies along the output's spatial dimensions;
/// -1 and `constant` when it is the same everywhere.
int divisor(const op_call& c, int x, const window_spec& w, size_t n, double& constant) {
  const auto in = c.b.at(x).shape;
  const auto out = c.result().shape;
  const bool count_padding = c.flag("count_include_pad", true);
  int product = -1;
  constant = 1;
  for (size_t i = 0; i < n; ++i) {
    const size_t d = out.size() - n + i;
    const int64_t last = (out[d] - 1) * w.stride[i] - w.padding[i] + w.kernel[i];
    const int64_t limit = in[d] + (count_padding ? w.padding[i] : 0);
    if ((count_padding || w.padding[i] == 0) && last <= limit) {
      constant *= static_cast<double>(w.kernel[i]);
      continue;
    }
    const auto integer = [&](int64_t v) { return c.b.constant(static_cast<double>(v), dtype::int64); };
    std::vector<int64_t> shape(out.size(), 1);
    shape[d] = out[d];
    const int start = c.b.add2(c.b.mul(c.b.index(shape, static_cast<int64_t>(d)), integer(w.stride[i])), integer(-w.padding[i]));
    int end = c.b.add2(start, integer(w.kernel[i]));
    end = c.b.pointwise(operation::min_or_second, dtype::int64, {end, integer(limit)});
    const int begin = count_padding ? start : c.b.pointwise(operation::max_or_second, dtype::int64, {start, integer(0)});
    const int length = c.b.convert(c.b.sub(end, begin), c.result().dtype);
    product = product < 0 ? length : c.b.mul(product, length);
  }
  return product;
}

rule avg_pool(size_t n) {
  return [n](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto w = spec_of(c, n);
    const int sum = c.b.window(operation::sum, x, w, c.result().shape);
    if (c.has("divisor_override")) return {c.b.div(sum, c.b.number(c.number("divisor_override"), x))};
    double constant = 1;
    const int varying = divisor(c, x, w, n, constant);
    if (varying < 0) return {c.b.mul(sum, c.b.number(1 / constant, x))};
    return {c.b.div(sum, constant == 1 ? varying : c.b.mul(varying, c.b.number(constant, x)))};
  };
}

rule adaptive_pool(operation op, size_t n) {
  return [op, n](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto in = c.b.at(x).shape;
    const auto out = c.result().shape;
    if (c.result().elements() == 0) return {c.b.constant(0, c.result().dtype, out), c.b.constant(0, dtype::int64, out)};
    window_spec w;
    double count = 1;
    bool even = true;
    for (size_t d = out.size() - n; d < out.size(); ++d) even = even && in[d] % out[d] == 0;
    if (!even) {
      int value = x;
      for (size_t d = out.size() - n; d < out.size(); ++d) value = adaptive_along(c.b, value, op, static_cast<int64_t>(d), out[d]);
      return op == operation::sum ? results{value} : results{value, -1};
    }
    for (size_t d = out.size() - n; d < out.size(); ++d) {
      w.kernel.push_back(in[d] / out[d]);
      w.padding.push_back(0);
      w.dilation.push_back(1);
      count *= static_cast<double>(in[d] / out[d]);
    }
    w.stride = w.kernel;
    const int value = c.b.window(op, x, w, out);
    if (op == operation::sum) return {c.b.mul(value, c.b.number(1 / count, x))};
    return {value, c.b.window(operation::argmax, x, w, out)};
  };
}

} // namespace

void add_window_rules(rule_table& t) {
  t["aten.max_pool2d_with_indices"] = max_pool(2);
  t["aten.max_pool3d_with_indices"] = max_pool(3);
  for (size_t n = 1; n <= 3; ++n) {
    const std::string d = std::to_string(n) + "d";
    t["aten.avg_pool" + d] = avg_pool(n);
    t["aten.max_pool" + d] = max_pool(n);
    t["aten._adaptive_avg_pool" + d] = adaptive_pool(operation::sum, n);
    t["aten.adaptive_avg_pool" + d] = adaptive_pool(operation::sum, n);
    t["aten.adaptive_max_pool" + d] = adaptive_pool(operation::max, n);
  }
}

} // namespace pragma::synthesis
