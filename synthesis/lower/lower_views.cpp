// Operators that only rearrange, create or look up: views, copies, concatenation, padding, constants, gather.
#include "synthesis/lower/lower.hpp"

#include <algorithm>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

constexpr int64_t most_edges = 128; ///< each value is compared with all of them; more want a search by halves

std::vector<int64_t> full_shape(const op_call& c) { return c.result().shape; }

int filled(const op_call& c, double value) { return c.b.constant(value, c.result().dtype, full_shape(c)); }

rule reshaped() {
  return [](const op_call& c) -> results { return {c.b.reshape(c.tensor("self"), c.result().shape)}; };
}

rule fill(double value) {
  return [value](const op_call& c) -> results { return {filled(c, value)}; };
}

results slice_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dim = c.dim("dim", x);
  const int64_t extent = c.b.at(x).shape.at(static_cast<size_t>(dim));
  int64_t start = c.integer("start", 0);
  if (start < 0) start += extent;
  start = std::clamp<int64_t>(start, 0, extent);
  return {c.b.slice(x, dim, start, c.integer("step", 1), c.result().shape.at(static_cast<size_t>(dim)))};
}

results pad_rule(const op_call& c) {
  int x = c.tensor("self");
  const auto pad = c.integers("pad");
  const double value = c.number("value", 0);
  const auto rank = static_cast<int64_t>(c.b.at(x).shape.size());
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    const int64_t dim = rank - 1 - static_cast<int64_t>(i / 2);
    const auto at = static_cast<size_t>(dim);
    int64_t low = pad[i], high = pad[i + 1];
    if (low < 0 || high < 0) {
      const int64_t from = std::max<int64_t>(0, -low), to = std::max<int64_t>(0, -high);
      x = c.b.slice(x, dim, from, 1, c.b.at(x).shape[at] - from - to);
      low = std::max<int64_t>(low, 0);
      high = std::max<int64_t>(high, 0);
    }
    std::vector<int> parts;
    auto shape = c.b.at(x).shape;
    if (low > 0) { shape[at] = low; parts.push_back(c.b.constant(value, c.b.at(x).dtype, shape)); }
    parts.push_back(x);
    if (high > 0) { shape[at] = high; parts.push_back(c.b.constant(value, c.b.at(x).dtype, shape)); }
    x = c.b.concat(parts, dim);
  }
  return {x};
}

results cat_rule(const op_call& c) {
  std::vector<int> parts;
  for (const auto& ref : c.node().args.at("tensors")) {
    const int part = c.b.convert(c.tensor_at(ref), c.result().dtype);
    if (c.b.at(part).elements() > 0) parts.push_back(part);
  }
  if (parts.empty()) throw not_lowered{"nothing but empty tensors"};
  return {c.b.concat(parts, c.dim("dim", parts[0]))};
}

results stack_rule(const op_call& c) {
  std::vector<int> parts;
  auto dim = c.integer("dim", 0);
  if (dim < 0) dim += static_cast<int64_t>(c.result().shape.size());
  for (const auto& ref : c.node().args.at("tensors")) parts.push_back(c.b.unsqueeze(c.tensor_at(ref), dim));
  return {c.b.concat(parts, dim)};
}

/// Parts along a dimension: of one size (the last is what is left), or of sizes that are listed.
results split_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dim = c.dim("dim", x);
  const int64_t extent = c.b.at(x).shape.at(static_cast<size_t>(dim));
  auto sizes = c.integers(c.has("split_sizes") ? "split_sizes" : "split_size");
  if (sizes.empty()) throw not_lowered{"parts of sizes that it does not name"};
  const bool equal = !c.has("split_sizes") && sizes.size() == 1;
  results parts;
  int64_t start = 0;
  for (size_t i = 0; equal ? start < extent : i < sizes.size(); ++i) {
    const int64_t count = std::min(equal ? sizes[0] : sizes[i], extent - start);
    parts.push_back(c.b.slice(x, dim, start, 1, count));
    start += count;
    if (count == 0) break;
  }
  return parts;
}

/// Each position along a dimension, without that dimension.
results unbind_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dim = c.dim("dim", x);
  results parts;
  for (int64_t i = 0; i < c.b.at(x).shape.at(static_cast<size_t>(dim)); ++i) parts.push_back(c.b.squeeze(c.b.slice(x, dim, i, 1, 1), {dim}));
  return parts;
}

/// Pieces of `size` elements, one each `step`, in a new last dimension.
results unfold_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dim = c.dim("dimension", x);
  const auto at = static_cast<size_t>(dim);
  const auto count = c.result().shape.at(at), size = c.integer("size"), step = c.integer("step");
  int pieces = -1; // [.., count, size, ..]
  if (step == size) {
    auto shape = c.b.at(x).shape;
    shape[at] = count;
    shape.insert(shape.begin() + dim + 1, size);
    pieces = c.b.reshape(c.b.slice(x, dim, 0, 1, count * size), shape);
  } else {
    const std::vector<int64_t> places{count, size};
    const int first = c.b.mul(c.b.convert(c.b.index(places, 0), dtype::int64), c.b.constant(static_cast<double>(step), dtype::int64));
    pieces = c.b.take(x, dim, c.b.add2(first, c.b.convert(c.b.index(places, 1), dtype::int64)));
  }
  std::vector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(c.b.at(pieces).shape.size()); ++d)
    if (d != dim + 1) order.push_back(d);
  order.push_back(dim + 1);
  return {c.b.permute(pieces, order)};
}

/// `self` with `source` in place of `count` positions of a dimension, from `start` on: what a write through a slice leaves.
int overwritten(node_builder& b, int self, int source, int64_t dim, int64_t start, int64_t count) {
  const int64_t extent = b.at(self).shape.at(static_cast<size_t>(dim)), behind = start + count;
  std::vector<int> parts;
  const auto keep = [&](int64_t from, int64_t to) {
    const bool joined = b.at(self).kind == node_kind::concat && b.at(self).dims[0] == dim; // what was written before stays a part of its own: a loop over positions leaves one list, not a copy for each
    int64_t at = 0;
    for (int part : joined ? b.at(self).args : std::vector<int>{self}) {
      const int64_t size = b.at(part).shape[static_cast<size_t>(dim)], low = std::max(from, at), high = std::min(to, at + size);
      if (low < high) parts.push_back(b.slice(part, dim, low - at, 1, high - low));
      at += size;
    }
  };
  keep(0, start);
  if (count > 0) parts.push_back(b.convert(source, b.at(self).dtype));
  keep(behind, extent);
  return parts.size() == 1 ? parts.front() : b.concat(parts, dim);
}

results slice_scatter_rule(const op_call& c) {
  const int x = c.tensor("self"), source = c.tensor("src");
  const auto dim = c.dim("dim", x);
  const int64_t extent = c.b.at(x).shape.at(static_cast<size_t>(dim));
  const auto position = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent); };
  if (c.integer("step", 1) != 1) throw not_lowered{"a write to every second position, or fewer"};
  const int64_t start = position(c.integer("start", 0));
  return {overwritten(c.b, x, source, dim, start, std::max<int64_t>(0, position(c.integer("end", extent)) - start))};
}

results select_scatter_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dim = c.dim("dim", x), index = c.integer("index");
  return {overwritten(c.b, x, c.b.unsqueeze(c.tensor("src"), dim), dim, index < 0 ? index + c.b.at(x).shape.at(static_cast<size_t>(dim)) : index, 1)};
}

/// The elements whose positions in two dimensions are the same but for an offset, in a new last dimension.
int diagonal(node_builder& b, int x, int64_t offset, size_t rows, size_t columns) {
  const auto from = b.at(x).shape;
  const int64_t down = std::max<int64_t>(0, -offset), right = std::max<int64_t>(0, offset), count = std::max<int64_t>(0, std::min(from[rows] - down, from[columns] - right));
  if (count == 0) throw not_lowered{"a diagonal without elements"};
  std::vector<int64_t> shape;
  std::vector<source_dim> map(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    if (d == rows || d == columns) continue;
    map[d] = {0, 1, static_cast<int>(shape.size())};
    shape.push_back(from[d]);
  }
  map[rows] = {down, 1, static_cast<int>(shape.size())};
  map[columns] = {right, 1, static_cast<int>(shape.size())};
  shape.push_back(count);
  return b.view(x, shape, map);
}

results rot90_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto dims = c.dims("dims", x, false);
  const int64_t turns = ((c.integer("k", 1) % 4) + 4) % 4;
  if (turns == 0) return {x};
  if (turns == 2) return {c.b.flip(x, dims)};
  std::vector<int64_t> order;
  for (size_t d = 0; d < c.b.at(x).shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
  std::swap(order.at(static_cast<size_t>(dims.at(0))), order.at(static_cast<size_t>(dims.at(1))));
  return {c.b.flip(c.b.permute(x, order), {dims[turns == 1 ? 0 : 1]})};
}

results channel_shuffle_rule(const op_call& c) {
  const int x = c.tensor("self");
  const auto whole = c.b.at(x).shape;
  const int64_t groups = c.integer("groups");
  auto apart = whole;
  apart.at(1) = whole.at(1) / groups;
  apart.insert(apart.begin() + 1, groups);
  std::vector<int64_t> order;
  for (size_t d = 0; d < apart.size(); ++d) order.push_back(static_cast<int64_t>(d));
  std::swap(order[1], order[2]);
  return {c.b.reshape(c.b.permute(c.b.reshape(x, apart), order), whole)};
}

/// Where each value belongs among sorted edges: how many of them lie before it. NaN lies behind all.
results place_among(const op_call& c, const char* values, const char* edges) {
  const int x = c.tensor(values), all = c.tensor(edges);
  if (c.has("sorter") || c.b.at(all).shape.size() != 1 || c.b.at(all).elements() > most_edges) throw not_lowered{"edges that are many, or differ from row to row"};
  const bool right = c.flag("right") || (c.has("side") && c.node().args.at("side") == "right");
  const auto type = promoted(c.b.at(x).dtype, c.b.at(all).dtype);
  const auto rank = static_cast<int64_t>(c.b.at(x).shape.size());
  const int behind = c.b.compare(right ? operation::greater : operation::greater_equal, c.b.convert(all, type), c.b.convert(c.b.unsqueeze(x, rank), type));
  const int before = c.b.convert(c.b.pointwise(operation::bit_not, dtype::boolean, {behind}), dtype::int32);
  return {c.b.convert(c.b.squeeze(c.b.reduce(operation::sum, before, {rank}), {rank}), c.result().dtype)};
}

rule triangle(bool upper) {
  return [upper](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto shape = c.b.at(x).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int row = c.b.index(shape, rank - 2), column = c.b.index(shape, rank - 1);
    const int moved = c.b.add2(row, c.b.constant(static_cast<double>(c.integer("diagonal")), dtype::int64));
    const int inside = c.b.compare(upper ? operation::greater_equal : operation::less_equal, column, moved);
    return {c.b.select(inside, x, c.b.number(0, x))};
  };
}

results roll_rule(const op_call& c) {
  int x = c.tensor("self");
  const auto shifts = c.integers("shifts"), dims = c.dims("dims", x, false);
  const auto whole = c.b.at(x).shape;
  if (dims.empty()) x = c.b.reshape(x, {c.b.at(x).elements()});
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t dim = dims.empty() ? 0 : dims[i], extent = c.b.at(x).shape.at(static_cast<size_t>(dim));
    if (extent == 0) continue;
    const int64_t shift = ((shifts[i] % extent) + extent) % extent;
    if (shift == 0) continue;
    x = c.b.concat({c.b.slice(x, dim, extent - shift, 1, shift), c.b.slice(x, dim, 0, 1, extent - shift)}, dim);
  }
  return {c.b.reshape(x, whole)};
}

results gather_rule(const op_call& c) {
  const int x = c.tensor("self"), index = c.tensor("index");
  return {c.b.pick(x, c.dim("dim", x), index)};
}

} // namespace

void add_view_rules(rule_table& t) {
  for (const char* op : {"view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "unflatten"})
    t[std::string("aten.") + op] = reshaped();
  for (const char* op : {"clone", "detach", "contiguous", "alias", "lift_fresh_copy", "dropout"})
    t[std::string("aten.") + op] = [](const op_call& c) -> results {
      if (c.flag("train")) throw not_lowered{"dropout in training mode"};
      return {c.has("self") ? c.tensor("self") : c.tensor("input")};
    };
  t["aten.permute"] = [](const op_call& c) -> results { const int x = c.tensor("self"); return {c.b.permute(x, c.dims("dims", x))}; };
  t["aten.transpose"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    std::vector<int64_t> order;
    for (size_t i = 0; i < c.b.at(x).shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
    if (order.empty()) return {x};
    std::swap(order.at(static_cast<size_t>(c.dim("dim0", x))), order.at(static_cast<size_t>(c.dim("dim1", x))));
    return {c.b.permute(x, order)};
  };
  t["aten.t"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.at(x).shape.size() < 2 ? x : c.b.permute(x, {1, 0})};
  };
  t["aten.expand"] = [](const op_call& c) -> results { return {c.b.expand(c.tensor("self"), c.result().shape)}; };
  t["aten.expand_as"] = t["aten.expand"];
  t["aten.broadcast_to"] = t["aten.expand"];
  t["aten.unsqueeze"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    auto dim = c.integer("dim");
    if (dim < 0) dim += static_cast<int64_t>(c.b.at(x).shape.size()) + 1;
    return {c.b.unsqueeze(x, dim)};
  };
  t["aten.squeeze"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.squeeze(x, c.has("dim") ? std::vector<int64_t>{c.dim("dim", x)} : c.dims("dim", x))};
  };
  t["aten.slice"] = slice_rule;
  t["aten.narrow"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.slice(x, c.dim("dim", x), c.integer("start"), 1, c.integer("length"))};
  };
  t["aten.select"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto dim = c.dim("dim", x);
    auto index = c.integer("index");
    if (index < 0) index += c.b.at(x).shape.at(static_cast<size_t>(dim));
    return {c.b.squeeze(c.b.slice(x, dim, index, 1, 1), {dim})};
  };
  t["aten.flip"] = [](const op_call& c) -> results { const int x = c.tensor("self"); return {c.b.flip(x, c.dims("dims", x, false))}; };
  t["aten.repeat"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    const auto repeats = c.integers("repeats");
    auto shape = c.b.at(x).shape;
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    std::vector<int64_t> apart, wide;
    for (size_t i = 0; i < shape.size(); ++i) {
      apart.insert(apart.end(), {1, shape[i]});
      wide.insert(wide.end(), {repeats[i], shape[i]});
    }
    return {c.b.reshape(c.b.expand(c.b.reshape(x, apart), wide), c.result().shape)};
  };
  t["aten.cat"] = cat_rule;
  t["aten.stack"] = stack_rule;
  for (const char* op : {"split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "split_copy", "split_with_sizes_copy"}) t[std::string("aten.") + op] = split_rule;
  t["aten.unbind"] = unbind_rule;
  t["aten.unfold"] = unfold_rule;
  t["aten.constant_pad_nd"] = pad_rule;
  t["aten.roll"] = roll_rule;
  t["aten.slice_scatter"] = slice_scatter_rule;
  t["aten.select_scatter"] = select_scatter_rule;
  t["aten.diagonal"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {diagonal(c.b, x, c.integer("offset"), static_cast<size_t>(c.dim("dim1", x)), static_cast<size_t>(c.dim("dim2", x)))};
  };
  t["aten.trace"] = [](const op_call& c) -> results {
    const int line = diagonal(c.b, c.tensor("self"), 0, 0, 1);
    return {c.b.squeeze(c.b.reduce(operation::sum, c.b.convert(line, c.result().dtype), {0}), {0})};
  };
  t["aten.rot90"] = rot90_rule;
  t["aten.channel_shuffle"] = channel_shuffle_rule;
  t["aten.searchsorted"] = [](const op_call& c) -> results { return place_among(c, "self", "sorted_sequence"); };
  t["aten.bucketize"] = [](const op_call& c) -> results { return place_among(c, "self", "boundaries"); };
  t["aten.triu"] = triangle(true);
  t["aten.tril"] = triangle(false);
  t["aten.gather"] = gather_rule;
  t["aten.index_select"] = [](const op_call& c) -> results {
    const int x = c.tensor("self");
    return {c.b.take(x, c.dim("dim", x), c.tensor("index"))};
  };
  t["aten.embedding"] = [](const op_call& c) -> results { return {c.b.take(c.tensor("weight"), 0, c.tensor("indices"))}; };
  for (const char* op : {"zeros", "zeros_like", "new_zeros"}) t[std::string("aten.") + op] = fill(0);
  for (const char* op : {"ones", "ones_like", "new_ones"}) t[std::string("aten.") + op] = fill(1);
  for (const char* op : {"full", "full_like", "new_full"})
    t[std::string("aten.") + op] = [](const op_call& c) -> results { return {filled(c, c.number("fill_value"))}; };
  t["aten.fill"] = [](const op_call& c) -> results {
    return {c.is_tensor("value") ? c.b.expand(c.operand("value", c.result().dtype), full_shape(c)) : filled(c, c.number("value"))};
  };
  t["aten.scalar_tensor"] = [](const op_call& c) -> results { return {filled(c, c.number("s"))}; };
  // What nobody writes over before it is read may be anything, in Torch as well.
  for (const char* op : {"empty", "empty_like", "new_empty"}) t[std::string("aten.") + op] = fill(0);
  t["aten.arange"] = [](const op_call& c) -> results {
    const auto type = c.result().dtype;
    int x = c.b.convert(c.b.index(full_shape(c), 0), type);
    if (c.number("step", 1) != 1) x = c.b.mul(x, c.b.constant(c.number("step", 1), type));
    if (c.number("start") != 0) x = c.b.add2(x, c.b.constant(c.number("start"), type));
    return {x};
  };
}

} // namespace pragma::synthesis
