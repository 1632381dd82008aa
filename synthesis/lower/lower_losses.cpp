// Losses: an element-wise formula and a reduction (none, mean, sum).
#include "synthesis/lower/lower.hpp"

#include <cmath>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

int reduced(const op_call& c, int loss) {
  const int64_t how = c.integer("reduction", 1);
  std::vector<int64_t> dims;
  for (size_t i = 0; i < c.b.at(loss).shape.size(); ++i) dims.push_back(static_cast<int64_t>(i));
  if (how == 0) return loss;
  return c.b.squeeze(how == 1 ? c.b.mean(loss, dims) : c.b.reduce(operation::sum, loss, dims), dims);
}

/// a rule whose element-wise formula is of input and target
rule elementwise(const std::function<int(const op_call&, int, int)>& formula) {
  return [formula](const op_call& c) -> results {
    const auto type = c.result().dtype;
    return {reduced(c, formula(c, c.operand("self", type), c.operand("target", type)))};
  };
}

int smooth_l1(const op_call& c, int x, int y) {
  const double beta = c.number("beta", 1);
  const int gap = c.b.unary(operation::abs, c.b.sub(x, y));
  if (beta == 0) return gap;
  const int square = c.b.mul(c.b.mul(gap, gap), c.b.number(0.5 / beta, x));
  return c.b.select(c.b.compare(operation::less, gap, c.b.number(beta, x)), square, c.b.sub(gap, c.b.number(0.5 * beta, x)));
}

int huber(const op_call& c, int x, int y) {
  const double delta = c.number("delta", 1);
  const int gap = c.b.unary(operation::abs, c.b.sub(x, y));
  const int square = c.b.mul(c.b.mul(gap, gap), c.b.number(0.5, x));
  const int line = c.b.mul(c.b.number(delta, x), c.b.sub(gap, c.b.number(0.5 * delta, x)));
  return c.b.select(c.b.compare(operation::less_equal, gap, c.b.number(delta, x)), square, line);
}

/// the weight per class, seen along the class dimension
int class_table(node_builder& b, int weight, size_t rank, size_t class_dim) {
  std::vector<int64_t> shape(rank, 1);
  shape[class_dim] = b.at(weight).elements();
  return b.reshape(weight, shape);
}

results cross_entropy_pick(const op_call& c) {
  const int logp = c.tensor("self");
  const int target = c.b.convert(c.tensor("target"), dtype::int64);
  const auto shape = c.b.at(logp).shape;
  const size_t class_dim = shape.size() == 1 ? 0 : 1;
  const auto ignored = static_cast<double>(c.integer("ignore_index", -100));
  // Labels keep their shape; the class dimension is added as size 1 and taken away again.
  const int label = c.b.unsqueeze(target, static_cast<int64_t>(class_dim));
  const int chosen = c.b.squeeze(c.b.pick(logp, static_cast<int64_t>(class_dim), label), {static_cast<int64_t>(class_dim)});
  const int keep = c.b.compare(operation::not_equal, target, c.b.constant(ignored, dtype::int64));
  const int zero = c.b.number(0, logp);
  int weight = c.b.number(1, logp);
  if (c.has("weight")) {
    const int table = class_table(c.b, c.tensor("weight"), shape.size(), class_dim);
    weight = c.b.squeeze(c.b.pick(c.b.expand(table, shape), static_cast<int64_t>(class_dim), label),
                         {static_cast<int64_t>(class_dim)});
  }
  weight = c.b.select(keep, weight, zero);
  const int loss = c.b.select(keep, c.b.unary(operation::neg, c.b.mul(weight, chosen)), zero);
  std::vector<int64_t> all;
  for (size_t i = 0; i < c.b.at(loss).shape.size(); ++i) all.push_back(static_cast<int64_t>(i));
  const auto how = c.integer("reduction", 1);
  if (how == 0) return {loss, -1};
  const int sum = c.b.squeeze(c.b.reduce(operation::sum, loss, all), all);
  const int total = c.b.squeeze(c.b.reduce(operation::sum, weight, all), all);
  return {how == 1 ? c.b.div(sum, total) : sum, total};
}

} // namespace

void add_loss_rules(rule_table& t) {
  t["aten.mse_loss"] = elementwise([](const op_call& c, int x, int y) {
    const int gap = c.b.sub(x, y);
    return c.b.mul(gap, gap);
  });
  t["aten.l1_loss"] = elementwise([](const op_call& c, int x, int y) { return c.b.unary(operation::abs, c.b.sub(x, y)); });
  t["aten.smooth_l1_loss"] = elementwise(smooth_l1);
  t["aten.huber_loss"] = elementwise(huber);
  t["aten.soft_margin_loss"] = elementwise([](const op_call& c, int x, int y) {
    // log(1 + exp(-y x)) without overflow
    const int z = c.b.unary(operation::neg, c.b.mul(x, y));
    const int tail = c.b.unary(operation::log1p_unit, c.b.unary(operation::exp_nonpositive, c.b.unary(operation::neg, c.b.unary(operation::abs, z))));
    return c.b.add2(c.b.pointwise(operation::max_or_second, c.b.at(x).dtype, {c.b.number(0, x), z}), tail);
  });
  t["aten.binary_cross_entropy"] = [](const op_call& c) -> results {
    const auto type = c.result().dtype;
    const int x = c.operand("self", type), y = c.operand("target", type);
    const int one = c.b.number(1, x), floor = c.b.number(-100, x);
    const auto clamped_log = [&](int v) { return c.b.pointwise(operation::max_or_second, type, {floor, c.b.unary(operation::log, v)}); };
    int loss = c.b.sub(c.b.mul(c.b.sub(y, one), clamped_log(c.b.sub(one, x))), c.b.mul(y, clamped_log(x)));
    if (c.has("weight")) loss = c.b.mul(loss, c.operand("weight", type));
    return {reduced(c, loss)};
  };
  t["aten.binary_cross_entropy_with_logits"] = [](const op_call& c) -> results {
    const auto type = c.result().dtype;
    if (c.has("pos_weight")) throw not_lowered{"pos_weight"};
    const int x = c.operand("self", type), y = c.operand("target", type);
    const int tail = c.b.unary(operation::log1p_unit, c.b.unary(operation::exp_nonpositive, c.b.unary(operation::neg, c.b.unary(operation::abs, x))));
    const int top = c.b.pointwise(operation::max_or_second, type, {c.b.number(0, x), x});
    int loss = c.b.add2(c.b.sub(top, c.b.mul(x, y)), tail);
    if (c.has("weight")) loss = c.b.mul(loss, c.operand("weight", type));
    return {reduced(c, loss)};
  };
  t["aten.nll_loss_forward"] = cross_entropy_pick;
  t["aten.nll_loss2d_forward"] = cross_entropy_pick;
}

} // namespace pragma::synthesis
