// Operators that write where a tensor of places says: scatter, index_add, index_put and their kin; bags of embeddings. What is added up is joined in memory
// (node_builder::scatter()). What replaces is found the other way round: the last of those that name a place, by the highest of their numbers, so that the result does
// not depend on the order in which they come.
#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <cmath>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;
using sizes = std::vector<int64_t>;

sizes shape_of(node_builder& b, int x) { return b.at(x).shape; }

int whole(node_builder& b, int64_t n) { return b.constant(static_cast<double>(n), dtype::int64); }

/// node_builder::scatter(), where the writer has a way to join.
int joined(node_builder& b, operation op, int self, int64_t dim, int places, int values) {
  const auto type = b.at(self).dtype;
  if (type == dtype::boolean) throw not_lowered{"sums or extremes of truth values at places"};
  const bool wide = type == dtype::int32 || type == dtype::int64;
  const bool atomic = op == operation::sum ? wide || is_floating(type) : (op == operation::max || op == operation::min) && wide;
  if (!b.loops && !atomic) throw not_lowered{"a " + std::string(name_of(op)) + " at places, for which a device has no atomic operation of " + json(type).get<std::string>()};
  return b.scatter(op, self, dim, b.convert(places, dtype::int64), values);
}

/// [n] as [1, .., n, .., 1]
int along(node_builder& b, int line, int64_t dim, size_t rank) {
  sizes shape(rank, 1);
  shape[static_cast<size_t>(dim)] = b.at(line).elements();
  return b.reshape(line, shape);
}

/// Places counted from the end become places; others stay what they are, also those that no tensor has.
int counted_from_the_end(node_builder& b, int places, int64_t extent) {
  places = b.convert(places, dtype::int64);
  return b.select(b.compare(operation::less, places, whole(b, 0)), b.add2(places, whole(b, extent)), places);
}

int filled(node_builder& b, double value, dtype type, const sizes& shape) { return b.constant(value, type, shape); }

/// Of those that name each place of a line of `extent`, the last; -1 where none does. `places` [n].
int last_at(node_builder& b, int places, int64_t extent) {
  return joined(b, operation::max, filled(b, -1, dtype::int64, {extent}), 0, places, b.index(shape_of(b, places), 0));
}

bool is_taken(node_builder& b, int self, int values) { return b.at(values).elements() == 0 || b.at(self).elements() == 0; }

/// `self` with `values` at `places` [n] of a dimension, in which `values` has n elements.
int replaced(node_builder& b, int self, int64_t dim, int places, int values) {
  if (is_taken(b, self, values)) return self;
  const auto shape = shape_of(b, self);
  const int last = last_at(b, places, shape[static_cast<size_t>(dim)]);
  const int taken = b.take(values, dim, last), there = b.compare(operation::greater_equal, along(b, last, dim, shape.size()), whole(b, 0));
  return b.select(there, taken, self);
}

/// As replaced(), with places of their own for all elements of `values`, which may be fewer than `self` has in the other dimensions.
int replaced_each(node_builder& b, int self, int64_t dim, int places, int values) {
  if (is_taken(b, self, values)) return self;
  const auto shape = shape_of(b, self), given = shape_of(b, values);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) == dim || given[d] == shape[d]) continue;
    const auto at = static_cast<int64_t>(d);
    const int changed = replaced_each(b, b.slice(self, at, 0, 1, given[d]), dim, places, values);
    return b.concat({changed, b.slice(self, at, given[d], 1, shape[d] - given[d])}, at);
  }
  const int last = joined(b, operation::max, filled(b, -1, dtype::int64, shape), dim, places, b.index(given, dim));
  return b.select(b.compare(operation::greater_equal, last, whole(b, 0)), b.pick(values, dim, last), self);
}

int first_part(node_builder& b, int x, const sizes& shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (b.at(x).shape[d] != shape[d]) x = b.slice(x, static_cast<int64_t>(d), 0, 1, shape[d]);
  return x;
}

/// What all forms of scatter have: a tensor, places in one of its dimensions, and a value for each place.
struct scattered {
  int self, places, values;
  int64_t dim;
};

scattered operands(const op_call& c) {
  const auto type = c.result().dtype;
  scattered s{};
  s.self = c.operand("self", type);
  s.places = c.tensor("index");
  if (c.b.at(s.self).shape.empty() || c.b.at(s.places).shape.empty()) throw not_lowered{"a tensor without dimensions"};
  s.dim = c.dim("dim", s.self);
  const auto shape = shape_of(c.b, s.places);
  s.values = c.is_tensor("src") ? first_part(c.b, c.b.convert(c.tensor("src"), type), shape) : filled(c.b, c.number("value"), type, shape);
  return s;
}

operation reduction_named(const std::string& name) {
  if (name == "sum" || name == "add" || name == "mean") return operation::sum;
  if (name == "prod" || name == "multiply") return operation::prod;
  if (name == "amax") return operation::max;
  if (name == "amin") return operation::min;
  throw not_lowered{"the reduction " + name};
}

results scatter_rule(const op_call& c) {
  const auto s = operands(c);
  if (c.has("reduce")) return {joined(c.b, reduction_named(c.node().args.at("reduce").get<std::string>()), s.self, s.dim, s.places, s.values)};
  return {replaced_each(c.b, s.self, s.dim, s.places, s.values)};
}

double beginning_of(operation op, dtype type) {
  if (op == operation::sum || op == operation::prod) return op == operation::prod;
  if (!is_floating(type)) throw not_lowered{"extremes of whole numbers without those that are there"};
  return op == operation::max ? -INFINITY : INFINITY;
}

results scatter_reduce_rule(const op_call& c) {
  auto s = operands(c);
  const auto name = c.node().args.at("reduce").get<std::string>();
  const auto op = reduction_named(name);
  const auto type = c.result().dtype;
  const bool with_self = c.flag("include_self", true), mean = name == "mean";
  if (mean && !is_floating(type)) throw not_lowered{"a mean of whole numbers"};
  if (is_taken(c.b, s.self, s.values)) return {s.self};
  int count = -1;
  if (mean || !with_self)
    count = joined(c.b, operation::sum, filled(c.b, with_self ? 1 : 0, dtype::int32, shape_of(c.b, s.self)), s.dim, s.places, filled(c.b, 1, dtype::int32, shape_of(c.b, s.values)));
  if (!with_self) s.self = c.b.select(c.b.compare(operation::greater, count, c.b.constant(0, dtype::int32)), c.b.constant(beginning_of(op, type), type), s.self);
  const int all = joined(c.b, op, s.self, s.dim, s.places, s.values);
  if (!mean) return {all};
  const int least_one = c.b.pointwise(operation::maximum, dtype::int32, {count, c.b.constant(1, dtype::int32)});
  return {c.b.div(all, c.b.convert(least_one, type))};
}

/// The places of index_add and its kin: a line, or a single one.
int line_of_places(const op_call& c) { return c.b.reshape(c.b.convert(c.tensor("index"), dtype::int64), {c.b.at(c.tensor("index")).elements()}); }

int source_of(const op_call& c, int self) {
  const int source = c.operand("source", c.result().dtype);
  if (c.b.at(self).shape.empty() || c.b.at(source).shape.size() != c.b.at(self).shape.size()) throw not_lowered{"a tensor without dimensions"};
  return source;
}

results index_add_rule(const op_call& c) {
  const int self = c.operand("self", c.result().dtype);
  int source = source_of(c, self);
  if (c.number("alpha", 1) != 1) source = c.b.mul(source, c.b.number(c.number("alpha"), source));
  const auto dim = c.dim("dim", self);
  const auto shape = shape_of(c.b, source);
  return {joined(c.b, operation::sum, self, dim, c.b.expand(along(c.b, line_of_places(c), dim, shape.size()), shape), source)};
}

results index_copy_rule(const op_call& c) {
  const int self = c.operand("self", c.result().dtype);
  return {replaced(c.b, self, c.dim("dim", self), line_of_places(c), source_of(c, self))};
}

results index_fill_rule(const op_call& c) {
  const int self = c.operand("self", c.result().dtype);
  const auto shape = shape_of(c.b, self);
  if (shape.empty()) throw not_lowered{"a tensor without dimensions"};
  const auto dim = c.dim("dim", self);
  const auto extent = shape[static_cast<size_t>(dim)];
  const int last = last_at(c.b, counted_from_the_end(c.b, line_of_places(c), extent), extent);
  return {c.b.select(c.b.compare(operation::greater_equal, along(c.b, last, dim, shape.size()), whole(c.b, 0)), c.operand("value", c.result().dtype), self)};
}

/// Several tensors of places, for dimensions of a tensor that stand together from `first` on, as one for all of these dimensions; -1 where one of them has no such place.
struct joint_places {
  int places = -1; ///< of the shape to which they broadcast
  size_t first = 0, count = 0;
  std::vector<int64_t> order; ///< of the tensor's dimensions before they stood together; empty: they did
};

joint_places together(const op_call& c, int self) {
  const auto& indices = c.node().args.at("indices");
  std::vector<size_t> named;
  for (size_t i = 0; i < indices.size(); ++i)
    if (!indices[i].is_null()) named.push_back(i);
  joint_places all;
  if (named.empty()) throw not_lowered{"no index tensor"};
  all.count = named.size();
  all.first = named.front();
  if (named.back() - named.front() + 1 != named.size()) { // Torch moves them to the front
    all.first = 0;
    for (size_t d : named) all.order.push_back(static_cast<int64_t>(d));
    for (size_t d = 0; d < c.b.at(self).shape.size(); ++d)
      if (std::find(named.begin(), named.end(), d) == named.end()) all.order.push_back(static_cast<int64_t>(d));
  }
  int inside = -1;
  for (size_t d : named) {
    const int index = c.tensor_at(indices[d]);
    if (c.b.at(index).dtype == dtype::boolean) throw not_lowered{"a mask as index"};
    const auto extent = c.b.at(self).shape.at(d);
    const int place = counted_from_the_end(c.b, index, extent);
    if (named.size() > 1) {
      const int here = c.b.pointwise(operation::bit_and, dtype::boolean, {c.b.compare(operation::greater_equal, place, whole(c.b, 0)), c.b.compare(operation::less, place, whole(c.b, extent))});
      inside = inside < 0 ? here : c.b.pointwise(operation::bit_and, dtype::boolean, {inside, here});
    }
    all.places = all.places < 0 ? place : c.b.add2(c.b.mul(all.places, whole(c.b, extent)), place);
  }
  if (inside >= 0) all.places = c.b.select(inside, all.places, whole(c.b, -1));
  return all;
}

/// The dimensions that joint places stand for as one.
int with_one_dimension(node_builder& b, int x, const joint_places& at) {
  if (!at.order.empty()) x = b.permute(x, at.order);
  auto shape = shape_of(b, x);
  for (size_t i = 1; i < at.count; ++i) {
    shape[at.first] *= shape[at.first + 1];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at.first) + 1);
  }
  return b.reshape(x, shape);
}

int as_it_was(node_builder& b, int x, const sizes& shape, const joint_places& at) {
  if (at.order.empty()) return b.reshape(x, shape);
  sizes turned, back(shape.size());
  for (size_t i = 0; i < at.order.size(); ++i) {
    turned.push_back(shape[static_cast<size_t>(at.order[i])]);
    back[static_cast<size_t>(at.order[i])] = static_cast<int64_t>(i);
  }
  return b.permute(b.reshape(x, turned), back);
}

/// x[mask] = value: one value wherever the mask is true.
int at_mask(const op_call& c, int self, int mask, size_t first, int values) {
  if (c.b.at(values).elements() != 1) throw not_lowered{"as many values as a mask has true elements"};
  auto shape = shape_of(c.b, mask);
  shape.insert(shape.begin(), first, 1);
  shape.resize(c.b.at(self).shape.size(), 1);
  const int value = c.b.reshape(values, {});
  return c.b.select(c.b.reshape(mask, shape), c.flag("accumulate") ? c.b.add2(self, value) : value, self);
}

results index_put_rule(const op_call& c) {
  const int self = c.operand("self", c.result().dtype), values = c.operand("values", c.result().dtype);
  const auto& indices = c.node().args.at("indices");
  size_t named = 0, last = 0;
  for (size_t i = 0; i < indices.size(); ++i)
    if (!indices[i].is_null()) ++named, last = i;
  if (named == 1)
    if (const int mask = c.tensor_at(indices[last]); c.b.at(mask).dtype == dtype::boolean) return {at_mask(c, self, mask, last, values)};
  const auto at = together(c, self);
  const int flat = with_one_dimension(c.b, self, at);
  const auto places = shape_of(c.b, at.places);
  const int64_t n = c.b.at(at.places).elements();
  auto wide = shape_of(c.b, flat);
  const auto dim = static_cast<std::ptrdiff_t>(at.first);
  wide.erase(wide.begin() + dim);
  auto lines = wide;
  wide.insert(wide.begin() + dim, places.begin(), places.end());
  lines.insert(lines.begin() + dim, n);
  const int source = c.b.reshape(c.b.expand(values, wide), lines), line = c.b.reshape(at.places, {n});
  const auto along_dim = static_cast<int64_t>(at.first);
  const int changed = c.flag("accumulate") ? joined(c.b, operation::sum, flat, along_dim, c.b.expand(along(c.b, line, along_dim, lines.size()), lines), source)
                                           : replaced(c.b, flat, along_dim, line, source);
  return {as_it_was(c.b, changed, shape_of(c.b, self), at)};
}

results index_rule(const op_call& c) {
  const auto& indices = c.node().args.at("indices");
  if (std::all_of(indices.begin(), indices.end(), [](const json& i) { return i.is_null(); })) return {c.tensor("self")};
  const int self = c.tensor("self");
  const auto at = together(c, self);
  return {c.b.take(with_one_dimension(c.b, self, at), static_cast<int64_t>(at.first), at.places)};
}

/// Elements of `source` one after the other wherever the mask is true.
results masked_scatter_rule(const op_call& c) {
  const int self = c.operand("self", c.result().dtype), source = c.operand("source", c.result().dtype);
  const auto shape = c.result().shape;
  const int64_t n = c.b.at(self).elements();
  if (c.b.at(self).shape != shape || n == 0 || c.b.at(source).elements() == 0) throw not_lowered{"a tensor that the mask makes larger, or nothing to take"};
  const int mask = c.b.expand(c.b.convert(c.tensor("mask"), dtype::boolean), shape);
  const int before = c.b.sub(c.b.scan(operation::sum, c.b.reshape(c.b.convert(mask, dtype::int64), {n}), 0), whole(c.b, 1));
  const int taken = c.b.take(c.b.reshape(source, {c.b.at(source).elements()}), 0, before);
  return {c.b.select(mask, c.b.reshape(taken, shape), self)};
}

enum class bag_mode : uint8_t { sum, mean, max };

/// Bags that all have `length` rows, one after the other: ordinary reductions. `rows` [n, width].
int equal_bags(node_builder& b, int rows, bag_mode mode, int64_t bags, int64_t length) {
  const int apart = b.reshape(rows, {bags, length, b.at(rows).shape[1]});
  const int joined = mode == bag_mode::mean ? b.mean(apart, {1}) : b.reduce(mode == bag_mode::max ? operation::max : operation::sum, apart, {1});
  return b.squeeze(joined, {1});
}

/// Rows of a table, joined bag by bag. The bag of a row is the number of offsets up to it.
results embedding_bag_rule(const op_call& c) {
  auto& b = c.b;
  const auto type = c.result().dtype;
  const int weight = c.operand("weight", type), indices = b.convert(c.tensor("indices"), dtype::int64), offsets = b.convert(c.tensor("offsets"), dtype::int64);
  const auto modes = c.integer("mode");
  if (modes < 0 || modes > 2) throw not_lowered{"a mode that it does not know"};
  const auto mode = static_cast<bag_mode>(modes);
  const int64_t n = b.at(indices).elements(), given = b.at(offsets).elements(), bags = c.result().shape.at(0), width = c.result().shape.at(1), padding = c.integer("padding_idx", -1);
  if (n == 0 || bags == 0) return {filled(b, 0, type, {bags, width}), -1, -1, -1};
  int rows = b.take(weight, 0, indices);
  if (c.is_tensor("per_sample_weights")) rows = b.mul(rows, b.reshape(c.operand("per_sample_weights", type), {n, 1}));
  const int64_t length = n / bags;
  const int steps = b.convert(b.index({bags}, 0), dtype::int64), equal = length == 1 ? steps : b.mul(steps, whole(b, length));
  if (padding < 0 && given == bags && length * bags == n && offsets == equal) return {equal_bags(b, rows, mode, bags, length), -1, -1, -1};
  const int began = joined(b, operation::sum, filled(b, 0, dtype::int64, {n}), 0, offsets, filled(b, 1, dtype::int64, {given})); // an offset behind the last row begins nothing
  int bag = b.sub(b.scan(operation::sum, began, 0), whole(b, 1));
  if (padding >= 0) bag = b.select(b.compare(operation::equal, indices, whole(b, padding)), whole(b, -1), bag);
  const int places = b.expand(b.reshape(bag, {n, 1}), {n, width});
  if (mode == bag_mode::sum) return {joined(b, operation::sum, filled(b, 0, type, {bags, width}), 0, places, rows), -1, -1, -1};
  const int count = b.reshape(joined(b, operation::sum, filled(b, 0, dtype::int32, {bags}), 0, bag, filled(b, 1, dtype::int32, {n})), {bags, 1});
  if (mode == bag_mode::mean) {
    const int divisor = b.convert(b.pointwise(operation::maximum, dtype::int32, {count, b.constant(1, dtype::int32)}), type);
    return {b.div(joined(b, operation::sum, filled(b, 0, type, {bags, width}), 0, places, rows), divisor), -1, -1, -1};
  }
  const int highest = joined(b, operation::max, filled(b, -INFINITY, type, {bags, width}), 0, places, rows);
  return {b.select(b.compare(operation::greater, count, b.constant(0, dtype::int32)), highest, b.number(0, highest)), -1, -1, -1};
}

} // namespace

void add_scatter_rules(rule_table& t) {
  t["aten._embedding_bag"] = embedding_bag_rule;
  t["aten._embedding_bag_forward_only"] = embedding_bag_rule;
  t["aten.scatter"] = scatter_rule;
  t["aten.scatter_add"] = [](const op_call& c) -> results {
    const auto s = operands(c);
    return {joined(c.b, operation::sum, s.self, s.dim, s.places, s.values)};
  };
  t["aten.scatter_reduce"] = scatter_reduce_rule;
  t["aten.index_add"] = index_add_rule;
  t["aten.index_copy"] = index_copy_rule;
  t["aten.index_fill"] = index_fill_rule;
  t["aten.index_put"] = index_put_rule;
  t["aten.index"] = t["aten._unsafe_index"] = index_rule; // the second: resizing as Torch 2.6 writes it
  t["aten.masked_scatter"] = masked_scatter_rule;
}

} // namespace pragma::synthesis
