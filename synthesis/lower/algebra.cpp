#include "synthesis/lower/algebra.hpp"

#include "synthesis/lower/rewrite.hpp"
#include "synthesis/lower/row_sums.hpp"

#include <algorithm>
#include <map>

namespace pragma::synthesis {

namespace {

using sizes = std::vector<int64_t>;

constexpr int64_t most_taps = 64; ///< of a convolution: each becomes a sum of its own

int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// Positions of one dimension of the input that meet one tap: start, start + step, ...
struct positions {
  int64_t start = 0, step = 1, count = 0;
};
positions under_tap(int64_t tap, int64_t in, int64_t out, int64_t stride, int64_t padding, int64_t dilation, bool transposed) {
  const int64_t shift = padding - tap * dilation;
  if (transposed) { // output o = i * stride - shift
    const int64_t first = std::max<int64_t>(0, ceil_div(shift, stride)), last = std::min(in - 1, floor_div(out - 1 + shift, stride));
    return {first, 1, std::max<int64_t>(0, last - first + 1)};
  }
  const int64_t first = std::max<int64_t>(0, ceil_div(shift, stride)), last = std::min(out - 1, floor_div(in - 1 + shift, stride));
  return {first * stride - shift, stride, std::max<int64_t>(0, last - first + 1)};
}

class simplifier {
public:
  explicit simplifier(tensor_program& out) : b_(out) {}

  /// The node's twin in the new program; `args` are twins already.
  int rebuild(tensor_node node) {
    if (node.kind == node_kind::reduce && node.op == operation::sum && is_floating(node.dtype))
      if (const int shorter = sum(node.args[0], node.dims); shorter >= 0) return shorter;
    return b_.add(std::move(node));
  }

private:
  /// The sum over `dims` (kept as size 1) without computing all that is summed; -1 where that gains nothing. Found once: x = x - c * x, step after step, has each x twice.
  int sum(int source, const sizes& dims) {
    const auto key = std::pair(source, dims);
    if (const auto it = sums_.find(key); it != sums_.end()) return it->second;
    const int found = find_sum(source, dims);
    return sums_[key] = found;
  }

  int find_sum(int source, const sizes& dims) {
    const tensor_node node = b_.at(source); // a copy: the list grows
    switch (node.kind) {
      case node_kind::pointwise: return sum_of_pointwise(node, dims);
      case node_kind::reshape: return sum_of_reshape(node, dims);
      case node_kind::anchor: return node.dtype != dtype::float32 ? -1 : node.op == operation::matmul ? sum_of_product(node, dims) : sum_of_convolution(node, dims);
      default: return -1;
    }
  }

  /// An operand with as many dimensions as the result that it broadcasts to.
  int padded(int operand, size_t rank) {
    auto shape = b_.at(operand).shape;
    shape.insert(shape.begin(), rank - shape.size(), 1);
    return b_.reshape(operand, shape);
  }
  static sizes longer_than_one(const sizes& shape, const sizes& dims) {
    sizes result;
    for (auto d : dims)
      if (shape[static_cast<size_t>(d)] != 1) result.push_back(d);
    return result;
  }
  bool constant_along(int operand, const sizes& dims) { return longer_than_one(b_.at(operand).shape, dims).empty(); }

  int sum_of_pointwise(const tensor_node& node, const sizes& dims) {
    if (node.args.empty() || node.args.size() > 2) return -1;
    std::vector<int> args;
    for (int a : node.args) args.push_back(padded(a, node.shape.size()));
    if (node.op == operation::neg) {
      const int s = sum(args[0], dims);
      return s < 0 ? -1 : b_.unary(operation::neg, s);
    }
    if (args.size() != 2) return -1;
    if (node.op == operation::mul || node.op == operation::div) {
      for (size_t factor : {size_t{1}, size_t{0}}) {
        if ((node.op == operation::div && factor == 0) || !constant_along(args[factor], dims)) continue;
        const int s = sum(args[1 - factor], dims);
        if (s < 0) continue;
        return node.op == operation::mul ? b_.mul(s, args[factor]) : b_.div(s, args[factor]);
      }
      return -1;
    }
    if (node.op != operation::add && node.op != operation::sub) return -1;
    bool gained = false;
    for (int& operand : args) {
      const auto shape = b_.at(operand).shape;
      const auto own = longer_than_one(shape, dims);
      int64_t repeated = 1;
      for (auto d : dims)
        if (shape[static_cast<size_t>(d)] == 1) repeated *= node.shape[static_cast<size_t>(d)];
      if (!own.empty()) {
        const int s = sum(operand, own);
        gained = gained || s >= 0;
        operand = s >= 0 ? s : b_.reduce(operation::sum, operand, own);
      }
      if (repeated != 1) operand = b_.mul(operand, b_.number(static_cast<double>(repeated), operand));
    }
    if (!gained) return -1;
    return node.op == operation::add ? b_.add2(args[0], args[1]) : b_.sub(args[0], args[1]);
  }

  /// Dimensions at the end that were one before: [n, c, h * w] as [n, c, h, w].
  int sum_of_reshape(const tensor_node& node, const sizes& dims) {
    const auto from = b_.at(node.args[0]).shape;
    const size_t kept = node.shape.size() - dims.size();
    if (from.size() != kept + 1 || dims.front() != static_cast<int64_t>(kept) || !std::equal(from.begin(), from.end() - 1, node.shape.begin())) return -1;
    const int s = sum(node.args[0], {static_cast<int64_t>(kept)});
    if (s < 0) return -1;
    auto shape = node.shape;
    std::fill(shape.begin() + static_cast<int64_t>(kept), shape.end(), 1);
    return b_.reshape(s, shape);
  }

  int transposed(int matrix) {
    const auto rank = static_cast<int64_t>(b_.at(matrix).shape.size());
    sizes order;
    for (int64_t d = 0; d < rank; ++d) order.push_back(d);
    std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
    return b_.permute(matrix, order);
  }

  int sum_of_product(const tensor_node& node, const sizes& dims) {
    const auto rank = static_cast<int64_t>(node.shape.size());
    const bool rows = std::find(dims.begin(), dims.end(), rank - 2) != dims.end(), columns = std::find(dims.begin(), dims.end(), rank - 1) != dims.end();
    if (static_cast<int64_t>(dims.size()) != rows + columns) return -1;
    int left = node.args[0], right = node.args[1];
    b_.note("the reference computes a whole matrix product and keeps only its sums: the sums of one operand give the same");
    if (columns) right = b_.reduce(operation::sum, right, {rank - 1}); // [.., k, 1]
    if (rows) left = b_.reduce(operation::sum, left, {rank - 2});      // [.., 1, k]
    if (columns) return b_.reduce(operation::sum, b_.mul(left, transposed(right)), {rank - 1});
    return b_.reduce(operation::sum, b_.mul(transposed(left), right), {rank - 2});
  }

  int sum_of_convolution(const tensor_node& node, const sizes& dims) {
    const size_t spatial = node.shape.size() - 2;
    int64_t taps = 1;
    for (auto k : node.window.kernel) taps *= k;
    const int64_t channels = b_.at(node.args[0]).shape[1], images = node.shape[0], results = node.shape[1];
    if (node.groups != 1 || dims.size() != spatial || dims.front() != 2 || taps > most_taps) return -1;
    std::vector<int> sums(static_cast<size_t>(taps));
    sums_under_taps(node, spatial, node.args[0], 0, 1, sums);
    b_.note("the reference computes a whole convolution and keeps only its sums over all positions: the sums of its input under each tap give the same");
    for (int& s : sums) s = b_.reshape(s, {images, channels, 1});
    const int inputs = b_.reshape(b_.concat(sums, 2), {images, channels * taps});
    int weights = -1; // [channels * taps, results]
    if (node.transposed) weights = b_.reshape(b_.permute(b_.reshape(node.args[1], {channels, results, taps}), {0, 2, 1}), {channels * taps, results});
    else weights = transposed(b_.reshape(node.args[1], {results, channels * taps}));
    const int unsummed = b_.mul(b_.reshape(inputs, {images, 1, channels * taps}), b_.reshape(transposed(weights), {1, results, channels * taps}));
    const int y = images > 1 && results > 1 && node.dtype == dtype::float32 ? b_.matmul(inputs, weights) : b_.reduce(operation::sum, unsummed, {2});
    auto shape = node.shape;
    std::fill(shape.begin() + 2, shape.end(), 1);
    return b_.reshape(y, shape);
  }

  /// Dimension by dimension from the last, so that what taps share is summed once. `place`: of this tap in row-major order.
  void sums_under_taps(const tensor_node& node, size_t dim, int image, int64_t place, int64_t stride, std::vector<int>& sums) {
    if (dim == 0) {
      sums[static_cast<size_t>(place)] = image;
      return;
    }
    const size_t d = dim - 1;
    const auto at = static_cast<int64_t>(d) + 2;
    const auto& w = node.window;
    const int64_t in = b_.at(node.args[0]).shape[d + 2];
    for (int64_t tap = 0; tap < w.kernel[d]; ++tap) {
      const auto p = under_tap(tap, in, node.shape[d + 2], w.stride[d], w.padding[d], w.dilation[d], node.transposed);
      int part = -1;
      if (p.count > 0) {
        part = b_.slice(image, at, p.start, p.step, p.count);
        if (p.count > 1) part = b_.reduce(operation::sum, part, {at});
      } else {
        auto shape = b_.at(image).shape;
        shape[d + 2] = 1;
        part = b_.constant(0, node.dtype, shape);
      }
      sums_under_taps(node, d, part, place + tap * stride, stride * w.kernel[d], sums);
    }
  }

  node_builder b_;
  std::map<std::pair<int, sizes>, int> sums_; ///< by node and dimensions
};

double contraction_work(const tensor_program& program) {
  double work = 0;
  for (const auto& node : program.nodes) {
    if (node.kind != node_kind::anchor) continue;
    const auto& other = program.nodes[static_cast<size_t>(node.args[1])];
    double depth = static_cast<double>(other.elements());
    if (node.op == operation::matmul) depth = static_cast<double>(other.shape[other.shape.size() - 2]);
    work += static_cast<double>(node.elements()) * depth;
  }
  return work;
}

} // namespace

tensor_program simplify(const tensor_program& original) {
  const auto program = with_row_sums(original);
  tensor_program twin = program;
  twin.nodes.clear();
  simplifier s(twin);
  std::vector<int> place;
  for (auto node : program.nodes) {
    for (int& a : node.args) a = place[static_cast<size_t>(a)];
    place.push_back(s.rebuild(std::move(node)));
  }
  for (int& o : twin.outputs) o = place[static_cast<size_t>(o)];
  twin = rewrite(twin);
  // Where the whole product is needed elsewhere too, its sums cost nothing more.
  return contraction_work(twin) < contraction_work(without_dead_nodes(program)) ? twin : program;
}

} // namespace pragma::synthesis
