#include "synthesis/lower/row_sums.hpp"

#include "synthesis/lower/lower.hpp"
#include "synthesis/lower/rewrite.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

namespace pragma::synthesis {

namespace {

using sizes = std::vector<int64_t>;

/// Sums of rows that are normalised as rows: what the loops over a row already find is not found in further ones.
class row_sums {
public:
  explicit row_sums(tensor_program& out) : b_(out) {}
  bool found = false;

  /// The node's twin in the new program; `args` are twins already. `shared`: others need what it reduces, too.
  int rebuild(tensor_node node, bool shared) {
    if (node.kind != node_kind::reduce || node.op != operation::sum || !is_floating(node.dtype)) return b_.add(std::move(node));
    const auto dims = node.dims;
    if (const int product = as_product(node.args[0], dims); product >= 0) {
      found = true;
      return product;
    }
    if (const auto inner = shared || !everything(node.args[0], dims) ? sizes{} : reduced_inside(node.args[0], dims, most_depth); !inner.empty() && inner != dims) { // row by row, then the rows
      sizes rest;
      std::set_difference(dims.begin(), dims.end(), inner.begin(), inner.end(), std::back_inserter(rest));
      if (b_.extent(node.args[0], inner) > 1 && b_.extent(node.args[0], rest) > 1) {
        found = true;
        return b_.reduce(operation::sum, sum_of_row(node.args[0], inner), rest);
      }
    }
    return sum_of_row(node.args[0], dims);
  }

private:
  static constexpr int most_depth = 12;      ///< of pointwise nodes between a sum and a reduction inside of it
  static constexpr int64_t least_extent = 8; ///< of rows, columns and steps: a product of less gains nothing

  int sum_of_row(int source, const sizes& dims) {
    if (!is_log_softmax(source, dims)) return b_.reduce(operation::sum, source, dims);
    found = true;
    const auto difference = b_.at(source); // a copy: the list grows
    const int logarithm = difference.args[1];
    return b_.sub(b_.reduce(operation::sum, difference.args[0], dims), b_.mul(logarithm, b_.number(static_cast<double>(b_.extent(source, dims)), logarithm)));
  }

  bool everything(int source, const sizes& dims) const { return b_.extent(source, dims) == b_.at(source).elements(); }

  /// The dimensions of a reduction that the elements of `n` depend on (it may have left one element of each), if they are some of `dims`. A reduction over all of
  /// `dims` counts before others: a variance, whose elements somebody stores. Empty where there is none.
  sizes reduced_inside(int n, const sizes& dims, int depth) const {
    const auto& node = b_.at(n);
    if (node.kind == node_kind::reduce) return std::includes(dims.begin(), dims.end(), node.dims.begin(), node.dims.end()) ? node.dims : sizes{};
    if (node.kind != node_kind::pointwise || depth == 0) return {};
    sizes most;
    for (int a : node.args)
      if (b_.at(a).shape.size() == node.shape.size())
        if (auto inside = reduced_inside(a, dims, depth - 1); inside.size() > most.size()) most = std::move(inside);
    return most;
  }

  /// a - log(sum(exp(a))), with a <= 0: both parts have one sign, so that the sum of a less n logarithms is as exact, and found a pass earlier.
  bool is_log_softmax(int n, const sizes& dims) const {
    const auto& difference = b_.at(n);
    if (difference.kind != node_kind::pointwise || difference.op != operation::sub) return false;
    const auto& logarithm = b_.at(difference.args[1]);
    if (logarithm.kind != node_kind::pointwise || logarithm.op != operation::log) return false;
    const auto& total = b_.at(logarithm.args[0]);
    if (total.kind != node_kind::reduce || total.op != operation::sum || total.dims != dims) return false;
    const auto& power = b_.at(total.args[0]);
    return power.kind == node_kind::pointwise && power.op == operation::exp_nonpositive && power.args[0] == difference.args[0];
  }

  /// Does the value of `n` differ along dimension `d` of its shape? true where that is not known.
  bool varies(int n, size_t d) {
    const auto key = std::pair(n, d);
    if (const auto it = varies_.find(key); it != varies_.end()) return it->second;
    const auto& node = b_.at(n);
    bool result = node.shape[d] > 1;
    if (result) switch (node.kind) {
      case node_kind::constant: result = false; break;
      case node_kind::index: result = node.dims[0] == static_cast<int64_t>(d); break;
      case node_kind::reduce: result = varies(node.args[0], d); break;
      case node_kind::pointwise:
        result = std::any_of(node.args.begin(), node.args.end(), [&](int a) {
          const size_t missing = node.shape.size() - b_.at(a).shape.size();
          return d >= missing && varies(a, d - missing);
        });
        break;
      case node_kind::view: {
        bool any = false;
        for (size_t s = 0; s < node.map.size(); ++s) any = any || (node.map[s].out_dim == static_cast<int>(d) && varies(node.args[0], s));
        result = any;
        break;
      }
      default: break;
      }
    return varies_[key] = result;
  }

  /// The values of `n` at the first place along dimension `d`, which keeps extent 1: what does not vary there is not computed for all places.
  int at_first(int n, size_t d) {
    tensor_node node = b_.at(n); // a copy: the list grows
    if (node.shape[d] == 1) return n;
    const auto key = std::pair(n, d);
    if (const auto it = first_.find(key); it != first_.end()) return it->second;
    const size_t rank = node.shape.size();
    switch (node.kind) {
      case node_kind::pointwise:
        for (int& a : node.args)
          if (const size_t missing = rank - b_.at(a).shape.size(); d >= missing) a = at_first(a, d - missing);
        break;
      case node_kind::reduce: node.args[0] = at_first(node.args[0], d); break;
      case node_kind::constant: break;
      case node_kind::view:
        for (auto& from : node.map)
          if (from.out_dim == static_cast<int>(d)) from.out_dim = -1;
        break;
      default: return first_[key] = b_.slice(n, static_cast<int64_t>(d), 0, 1, 1);
    }
    node.shape[d] = 1;
    if (node.kind == node_kind::view) return first_[key] = b_.view(node.args[0], node.shape, node.map);
    return first_[key] = b_.add(std::move(node));
  }

  /// sum over k of a[.., i, k] b[.., j, k], which is written as a product of elements in [.., i, j, k], as a matrix product; -1 where it is none.
  int as_product(int source, const sizes& dims) {
    const auto node = b_.at(source); // a copy: the list grows
    if (node.kind != node_kind::pointwise || node.op != operation::mul || node.dtype != dtype::float32 || dims.size() != 1) return -1;
    const auto rank = node.shape.size();
    const auto k = static_cast<size_t>(dims[0]);
    const int a = padded(node.args[0], rank), b = padded(node.args[1], rank);
    sizes batch;
    int64_t i = -1, j = -1;
    for (size_t d = 0; d < rank; ++d) {
      if (d == k) continue;
      const bool left = varies(a, d), right = varies(b, d);
      auto& which = left ? i : j;
      if (left == right) batch.push_back(static_cast<int64_t>(d)); // of both, or extent 1
      else if (which >= 0) return -1;
      else which = static_cast<int64_t>(d);
    }
    if (i < 0 || j < 0 || std::min({extent(node, i), extent(node, j), node.shape[k]}) < least_extent) return -1;
    b_.note("the reference multiplies every row of one tensor with every row of another element by element, and adds up: a matrix product gives the same sums");
    auto order = batch;
    for (auto d : {i, j, static_cast<int64_t>(k)}) order.push_back(d);
    sizes shape;
    for (auto d : batch) shape.push_back(extent(node, d));
    const auto matrix = [&](int operand, int64_t own, int64_t other) { // [batch.., own, k]
      auto to = shape;
      to.insert(to.end(), {extent(node, own), node.shape[k]});
      auto one = node.shape;
      one[static_cast<size_t>(other)] = 1;
      return b_.reshape(b_.permute(b_.expand(at_first(operand, static_cast<size_t>(other)), one), order), to);
    };
    const int left = matrix(a, i, j), right = matrix(b, j, i);
    const auto last = static_cast<int64_t>(shape.size());
    auto turned = sizes(shape.size() + 2);
    std::iota(turned.begin(), turned.end(), 0);
    std::swap(turned[static_cast<size_t>(last)], turned[static_cast<size_t>(last) + 1]);
    const int product = b_.matmul(left, b_.permute(right, turned)); // [batch.., i, j]
    auto with_one = b_.at(product).shape;
    with_one.push_back(1);
    sizes back(rank);
    for (size_t d = 0; d < rank; ++d) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    return b_.permute(b_.reshape(product, with_one), back);
  }

  static int64_t extent(const tensor_node& node, int64_t d) { return node.shape[static_cast<size_t>(d)]; }
  int padded(int operand, size_t rank) {
    auto shape = b_.at(operand).shape;
    shape.insert(shape.begin(), rank - shape.size(), 1);
    return b_.reshape(operand, shape);
  }

  node_builder b_;
  std::map<std::pair<int, size_t>, bool> varies_; ///< by node and dimension
  std::map<std::pair<int, size_t>, int> first_;
};

} // namespace

tensor_program with_row_sums(const tensor_program& program) {
  tensor_program twin = program;
  twin.nodes.clear();
  row_sums s(twin);
  std::vector<int> place, uses(program.nodes.size());
  for (const auto& node : program.nodes)
    for (int a : node.args) ++uses[static_cast<size_t>(a)];
  for (int o : program.outputs) ++uses[static_cast<size_t>(o)];
  for (auto node : program.nodes) {
    const bool shared = !node.args.empty() && uses[static_cast<size_t>(node.args[0])] > 1;
    for (int& a : node.args) a = place[static_cast<size_t>(a)];
    place.push_back(s.rebuild(std::move(node), shared));
  }
  for (int& o : twin.outputs) o = place[static_cast<size_t>(o)];
  return s.found ? without_dead_nodes(twin) : program;
}

} // namespace pragma::synthesis
