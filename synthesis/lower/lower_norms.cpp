// Normalisation layers: batch (training and eval mode), layer, group; instance norm arrives as batch norm over a view.
#include "synthesis/lower/lower.hpp"

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

/// `parameter` of n elements, seen along `dim` of a tensor of that rank
int along(node_builder& b, int parameter, size_t rank, size_t dim) {
  std::vector<int64_t> shape(rank, 1);
  shape[dim] = b.at(parameter).elements();
  return b.reshape(parameter, shape);
}

struct statistics {
  int mean, inverse_deviation;
};

statistics statistics_of(node_builder& b, int x, const std::vector<int64_t>& dims, double eps) {
  const int mean = b.mean(x, dims);
  const int centered = b.sub(x, mean);
  const int variance = b.mean(b.mul(centered, centered), dims);
  return {mean, b.unary(operation::rsqrt, b.add2(variance, b.number(eps, x)))};
}

/// (x - mean) * scale + shift: exactly shift where x is its mean, as in Torch. A multiply-add of x with an offset would leave
/// the rounding of mean * scale there, which the next normalisation blows up.
int normalised(node_builder& b, int x, int mean, int scale, int shift) {
  const int y = b.mul(b.sub(x, mean), scale);
  return shift >= 0 ? b.add2(y, shift) : y;
}

/// x * scale + (shift - mean * scale): one multiply-add per element once scale and offset are known per channel.
int affine(node_builder& b, int x, int mean, int scale, int shift) {
  const int offset = shift >= 0 ? b.sub(shift, b.mul(mean, scale)) : b.unary(operation::neg, b.mul(mean, scale));
  return b.add2(b.mul(x, scale), offset);
}

results batch_norm(const op_call& c) {
  const int x = c.tensor(c.has("input") ? "input" : "self");
  const size_t rank = c.b.at(x).shape.size();
  const auto optional = [&](const char* name) { return c.has(name) ? along(c.b, c.tensor(name), rank, 1) : -1; };
  statistics s{};
  if (c.flag("training") || !c.has("running_mean")) {
    std::vector<int64_t> dims;
    for (size_t i = 0; i < rank; ++i)
      if (i != 1) dims.push_back(static_cast<int64_t>(i));
    s = statistics_of(c.b, x, dims, c.number("eps"));
  } else {
    s.mean = optional("running_mean");
    s.inverse_deviation = c.b.unary(operation::rsqrt, c.b.add2(optional("running_var"), c.b.number(c.number("eps"), x)));
  }
  const int weight = optional("weight");
  const int scale = weight >= 0 ? c.b.mul(s.inverse_deviation, weight) : s.inverse_deviation;
  const bool measured = c.flag("training") || !c.has("running_mean");
  const int y = (measured ? normalised : affine)(c.b, x, s.mean, scale, optional("bias"));
  const std::vector<int64_t> channels{c.b.at(x).shape.at(1)};
  if (!c.flag("training")) return {y, -1, -1};
  return {y, c.b.reshape(s.mean, channels), c.b.reshape(s.inverse_deviation, channels)};
}

results layer_norm(const op_call& c) {
  const int x = c.tensor("input");
  const auto normalized = c.integers("normalized_shape");
  const size_t rank = c.b.at(x).shape.size();
  std::vector<int64_t> dims;
  for (size_t i = rank - normalized.size(); i < rank; ++i) dims.push_back(static_cast<int64_t>(i));
  const auto s = statistics_of(c.b, x, dims, c.number("eps"));
  int y = normalised(c.b, x, s.mean, s.inverse_deviation, -1);
  if (c.has("weight")) y = c.b.mul(y, c.tensor("weight"));
  if (c.has("bias")) y = c.b.add2(y, c.tensor("bias"));
  return {y, s.mean, s.inverse_deviation};
}

results group_norm(const op_call& c) {
  const int x = c.tensor("input");
  const auto shape = c.b.at(x).shape;
  const int64_t n = c.integer("N"), channels = c.integer("C"), plane = c.integer("HxW"), groups = c.integer("group");
  if (groups <= 0 || channels % groups != 0) throw not_lowered{"channels that do not divide into groups"};
  const std::vector<int64_t> split{n, groups, channels / groups, plane};
  const int grouped = c.b.reshape(x, split);
  const auto s = statistics_of(c.b, grouped, {2, 3}, c.number("eps"));
  const std::vector<int64_t> per_channel{1, groups, channels / groups, 1};
  int scale = s.inverse_deviation, shift = -1;
  if (c.has("weight")) scale = c.b.mul(scale, c.b.reshape(c.tensor("weight"), per_channel));
  if (c.has("bias")) shift = c.b.reshape(c.tensor("bias"), per_channel);
  const int y = normalised(c.b, grouped, s.mean, scale, shift);
  return {c.b.reshape(y, shape), c.b.reshape(s.mean, {n, groups}), c.b.reshape(s.inverse_deviation, {n, groups})};
}

} // namespace

void add_norm_rules(rule_table& t) {
  t["aten.native_batch_norm"] = batch_norm;
  t["aten._native_batch_norm_legit"] = batch_norm;
  t["aten._native_batch_norm_legit_no_training"] = batch_norm; // what Torch 2.6 makes of one in evaluation; it has no argument `training`
  t["aten.native_layer_norm"] = layer_norm;
  t["aten.native_group_norm"] = group_norm;
}

} // namespace pragma::synthesis
