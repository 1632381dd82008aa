// Builds primitives, each equal one once. Shapes broadcast as in Torch.
#include "synthesis/lower/lower.hpp"

#include <algorithm>
#include <set>

namespace pragma::synthesis {

namespace {

void check_types(operation op, dtype type) {
  if (!accepts(traits(op).types, type)) throw not_lowered{std::string(name_of(op)) + " of " + json(type).get<std::string>()};
}

} // namespace

int node_builder::add(tensor_node node) { return known_.intern(program_.nodes, std::move(node)); }

int node_builder::constant(double value, dtype type, std::vector<int64_t> shape) {
  tensor_node node;
  node.kind = node_kind::constant;
  node.dtype = type;
  node.value = type == dtype::boolean ? (value != 0) : value;
  node.shape = std::move(shape);
  return add(std::move(node));
}

int node_builder::leaf(int buffer, const tensor_type& type) {
  tensor_node node;
  node.kind = node_kind::leaf;
  node.dtype = type.dtype;
  node.shape = type.shape;
  node.buffer = buffer;
  return add(std::move(node));
}

int node_builder::convert(int source, dtype type) {
  if (at(source).dtype == type) return source;
  if (at(source).kind == node_kind::constant) return constant(at(source).value, type, at(source).shape);
  return pointwise(operation::convert, type, {source});
}

int node_builder::rounded_to(dtype half, int source) {
  return unary(half == dtype::float16 ? operation::round_float16 : operation::round_bfloat16, convert(source, dtype::float32));
}

int node_builder::held_as(dtype half, int source) {
  const auto kind = at(source).kind;
  if (at(source).dtype != dtype::float32 || kind == node_kind::leaf || kind == node_kind::constant) return source;
  auto node = at(source);
  node.held_as = half;
  return add(std::move(node));
}

int node_builder::pointwise(operation op, dtype result, std::vector<int> args) {
  check_types(op, traits(op).result == result_rule::like_arguments ? result : at(args.back()).dtype);
  tensor_node node;
  node.kind = node_kind::pointwise;
  node.op = op;
  node.dtype = result;
  size_t rank = 0;
  for (int a : args) rank = std::max(rank, at(a).shape.size());
  node.shape.assign(rank, 1);
  for (int a : args) {
    const auto& shape = at(a).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      auto& d = node.shape[rank - shape.size() + i];
      if (d == 1) d = shape[i];
      else if (shape[i] != 1 && shape[i] != d) throw not_lowered{std::string(name_of(op)) + " of shapes that do not broadcast"};
    }
  }
  node.args = std::move(args);
  return add(std::move(node));
}

int node_builder::extreme(operation op, int a, int b) {
  const auto type = at(a).dtype;
  const bool highest = op == operation::maximum || op == operation::fmax;
  return pointwise(type != dtype::boolean ? op : highest ? operation::bit_or : operation::bit_and, type, {a, b});
}

int node_builder::index(std::vector<int64_t> shape, int64_t dim, dtype type) {
  tensor_node node;
  node.kind = node_kind::index;
  node.dtype = type;
  node.shape = std::move(shape);
  node.dims = {dim};
  return add(std::move(node));
}

int node_builder::table(const std::vector<double>& values, dtype type, std::vector<int64_t> shape) {
  size_t i = 0;
  const auto known = [&](const buffer& b) { return b.kind == buffer_kind::constant && b.dtype == type && b.values == values; };
  while (i < program_.buffers.size() && !known(program_.buffers[i])) ++i;
  if (i == program_.buffers.size()) {
    buffer b;
    b.kind = buffer_kind::constant;
    b.index = static_cast<int>(i);
    b.dtype = type;
    b.elements = static_cast<int64_t>(values.size());
    b.values = values;
    b.name = "numbers" + std::to_string(i);
    program_.buffers.push_back(std::move(b));
  }
  return leaf(static_cast<int>(i), {type, std::move(shape)});
}

int node_builder::view(int source, std::vector<int64_t> shape, std::vector<source_dim> map) {
  const auto& from = at(source);
  bool same = shape == from.shape;
  for (size_t i = 0; same && i < map.size(); ++i)
    same = map[i].offset == 0 && map[i].step == 1 && map[i].out_dim == static_cast<int>(i);
  if (same) return source;
  tensor_node node;
  node.kind = node_kind::view;
  node.dtype = from.dtype;
  node.shape = std::move(shape);
  node.args = {source};
  node.map = std::move(map);
  return add(std::move(node));
}

int node_builder::reshape(int source, std::vector<int64_t> shape) {
  if (at(source).shape == shape) return source;
  tensor_node node;
  node.kind = node_kind::reshape;
  node.dtype = at(source).dtype;
  node.shape = std::move(shape);
  node.args = {source};
  return add(std::move(node));
}

int node_builder::permute(int source, const std::vector<int64_t>& order) {
  const auto from = at(source).shape;
  std::vector<int64_t> shape(order.size());
  std::vector<source_dim> map(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    shape[i] = from[static_cast<size_t>(order[i])];
    map[static_cast<size_t>(order[i])] = {0, 1, static_cast<int>(i)};
  }
  return view(source, shape, map);
}

int node_builder::expand(int source, const std::vector<int64_t>& shape) {
  const auto from = at(source).shape;
  if (shape.size() < from.size()) throw not_lowered{"expand to fewer dimensions"};
  const size_t extra = shape.size() - from.size();
  std::vector<int64_t> to = shape;
  std::vector<source_dim> map(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    auto& d = to[extra + i];
    if (d < 0) d = from[i];
    map[i] = from[i] == 1 && d != 1 ? source_dim{0, 1, -1} : source_dim{0, 1, static_cast<int>(extra + i)};
  }
  return view(source, to, map);
}

int node_builder::slice(int source, int64_t dim, int64_t start, int64_t step, int64_t count) {
  auto shape = at(source).shape;
  std::vector<source_dim> map(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) map[i] = {0, 1, static_cast<int>(i)};
  map[static_cast<size_t>(dim)].offset = start;
  map[static_cast<size_t>(dim)].step = step;
  shape[static_cast<size_t>(dim)] = count;
  return view(source, shape, map);
}

int node_builder::flip(int source, const std::vector<int64_t>& dims) {
  const auto shape = at(source).shape;
  std::vector<source_dim> map(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) map[i] = {0, 1, static_cast<int>(i)};
  for (auto d : dims) map[static_cast<size_t>(d)] = {shape[static_cast<size_t>(d)] - 1, -1, static_cast<int>(d)};
  return view(source, shape, map);
}

int node_builder::unsqueeze(int source, int64_t dim) {
  auto shape = at(source).shape;
  std::vector<source_dim> map(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) map[i] = {0, 1, static_cast<int>(i) + (static_cast<int64_t>(i) >= dim ? 1 : 0)};
  shape.insert(shape.begin() + dim, 1);
  return view(source, shape, map);
}

int node_builder::squeeze(int source, std::vector<int64_t> dims) {
  const auto from = at(source).shape;
  const std::set<int64_t> gone(dims.begin(), dims.end());
  std::vector<int64_t> shape;
  std::vector<source_dim> map(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (gone.count(static_cast<int64_t>(i)) && from[i] == 1) {
      map[i] = {0, 1, -1};
    } else {
      map[i] = {0, 1, static_cast<int>(shape.size())};
      shape.push_back(from[i]);
    }
  }
  return view(source, shape, map);
}

int node_builder::reduce(operation op, int source, std::vector<int64_t> dims) {
  check_types(op, at(source).dtype);
  tensor_node node;
  node.kind = node_kind::reduce;
  node.op = op;
  node.dtype = finds_place(op) ? dtype::int64 : at(source).dtype;
  node.shape = at(source).shape;
  std::sort(dims.begin(), dims.end());
  bool work = false;
  for (auto d : dims) {
    work = work || node.shape[static_cast<size_t>(d)] != 1;
    node.shape[static_cast<size_t>(d)] = 1;
  }
  node.args = {source};
  node.dims = std::move(dims);
  if (!work) {
    program_.redundant.push_back("a " + std::string(name_of(op)) + " runs over dimensions of size 1, which leaves its input as it is");
    return finds_place(op) ? constant(0, dtype::int64, node.shape) : source;
  }
  return add(std::move(node));
}

int node_builder::scan(operation op, int source, int64_t dim) {
  check_types(op, at(source).dtype);
  if (exact_scans && op == operation::sum && at(source).dtype == dtype::float32 && at(source).shape[static_cast<size_t>(dim)] > 1)
    return convert(scan(op, convert(source, dtype::float64), dim), dtype::float32);
  tensor_node node;
  node.kind = node_kind::scan;
  node.op = op;
  node.dtype = at(source).dtype;
  node.shape = at(source).shape;
  node.args = {source};
  node.dims = {dim};
  if (node.shape[static_cast<size_t>(dim)] == 1) return source;
  return add(std::move(node));
}

int node_builder::decayed_sum(int given, int decay, int64_t dim) {
  if (at(given).shape[static_cast<size_t>(dim)] == 1) return given;
  tensor_node node;
  node.kind = node_kind::scan;
  node.op = operation::decayed_sum;
  node.dtype = at(given).dtype;
  node.shape = at(given).shape;
  node.args = {given, decay};
  node.dims = {dim};
  return add(std::move(node));
}

int node_builder::window(operation op, int source, window_spec spec, const std::vector<int64_t>& out, int weights) {
  tensor_node node;
  node.kind = node_kind::window;
  node.op = op;
  node.dtype = finds_place(op) ? dtype::int64 : at(source).dtype;
  node.shape = out;
  node.args = {source};
  if (weights >= 0) node.args.push_back(weights);
  node.window = std::move(spec);
  return add(std::move(node));
}

int node_builder::matmul(int a, int b, dtype sums, tf32_rounding rounding) {
  tensor_node node;
  node.kind = node_kind::anchor;
  node.op = operation::matmul;
  node.dtype = sums;
  node.shape = at(a).shape;
  node.shape.back() = at(b).shape.back();
  node.args = {a, b};
  node.rounding = rounding;
  return add(std::move(node));
}

int node_builder::convolution(int image, int weights, window_spec spec, int64_t groups, bool transposed, const std::vector<int64_t>& out, tf32_rounding rounding) {
  tensor_node node;
  node.kind = node_kind::anchor;
  node.op = operation::convolution;
  node.dtype = at(image).dtype;
  node.shape = out;
  node.args = {image, weights};
  node.window = std::move(spec);
  node.groups = groups;
  node.transposed = transposed;
  node.rounding = rounding;
  return add(std::move(node));
}

int node_builder::recurrence(operation op, int given, int weights, int state, int cell, int bias) {
  tensor_node node;
  node.kind = node_kind::recurrence;
  node.op = op;
  node.dtype = at(given).dtype;
  node.shape = at(state).shape;
  node.shape.insert(node.shape.begin(), at(given).shape[0] + (op == operation::lstm ? 2 : 1));
  node.args = {given, weights, state};
  for (int more : {cell, bias})
    if (more >= 0) node.args.push_back(more);
  return add(std::move(node));
}

int node_builder::concat(std::vector<int> nodes, int64_t dim) {
  // First ones that are put together already are one: a dense block puts all its layers' results together anew after each layer.
  for (size_t known = 0; known < concats_.size();) {
    const int before = concats_[known++];
    const auto& parts = at(before).args;
    if (at(before).dims[0] != dim || parts.size() > nodes.size() || !std::equal(parts.begin(), parts.end(), nodes.begin())) continue;
    nodes.erase(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(parts.size()));
    nodes.insert(nodes.begin(), before);
    known = 0;
  }
  if (nodes.size() == 1) return nodes[0];
  tensor_node node;
  node.kind = node_kind::concat;
  node.dtype = at(nodes[0]).dtype;
  node.shape = at(nodes[0]).shape;
  node.shape[static_cast<size_t>(dim)] = 0;
  for (int n : nodes) node.shape[static_cast<size_t>(dim)] += at(n).shape[static_cast<size_t>(dim)];
  node.args = std::move(nodes);
  node.dims = {dim};
  concats_.push_back(add(std::move(node)));
  return concats_.back();
}

int node_builder::pick(int source, int64_t dim, int position) {
  tensor_node node;
  node.kind = node_kind::pick;
  node.dtype = at(source).dtype;
  node.shape = at(position).shape;
  node.args = {source, position};
  node.dims = {dim};
  return add(std::move(node));
}

int node_builder::scatter(operation op, int self, int64_t dim, int places, int values) {
  check_types(op, at(self).dtype);
  if (at(values).elements() == 0 || at(self).elements() == 0) return self;
  tensor_node node;
  node.kind = node_kind::scatter;
  node.op = op;
  node.dtype = at(self).dtype;
  node.shape = at(self).shape;
  node.args = {self, places, values};
  node.dims = {dim};
  return add(std::move(node));
}

int node_builder::take(int source, int64_t dim, int places) {
  const auto from = at(source).shape, index = at(places).shape;
  const auto rank = static_cast<int64_t>(index.size());
  if (rank == 0) throw not_lowered{"a scalar index"};
  auto out = from;
  out.erase(out.begin() + dim);
  out.insert(out.begin() + dim, index.begin(), index.end());
  auto wide = out; // pick() wants a source of the result's rank
  wide[static_cast<size_t>(dim)] = from[static_cast<size_t>(dim)];
  std::vector<source_dim> of_source(from.size()), of_places(index.size());
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) of_source[static_cast<size_t>(i)] = {0, 1, static_cast<int>(i <= dim ? i : i + rank - 1)};
  for (size_t i = 0; i < index.size(); ++i) of_places[i] = index[i] == 1 ? source_dim{0, 1, -1} : source_dim{0, 1, static_cast<int>(dim) + static_cast<int>(i)};
  const int spread = view(places, out, of_places); // by itself: building moves the nodes
  return pick(view(source, wide, of_source), dim, spread);
}

int64_t node_builder::extent(int node, const std::vector<int64_t>& dims) const {
  int64_t n = 1;
  for (auto d : dims) n *= at(node).shape[static_cast<size_t>(d)];
  return n;
}

int node_builder::mean(int node, const std::vector<int64_t>& dims) {
  const auto n = static_cast<double>(extent(node, dims));
  const int sum = reduce(operation::sum, node, dims);
  return n == 1 ? sum : div(sum, number(n, sum));
}

dtype promoted(dtype a, dtype b) {
  if (a == b) return a;
  const auto category = [](dtype t) { return is_floating(t) ? 2 : t == dtype::boolean ? 0 : 1; };
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (category(a) == 2) return a == dtype::float64 || b == dtype::float64 ? dtype::float64 : dtype::float32;
  if ((a == dtype::uint8) != (b == dtype::uint8) && (a == dtype::int8 || b == dtype::int8)) return dtype::int16;
  return size_of(a) >= size_of(b) ? a : b;
}

} // namespace pragma::synthesis
