// Matrix products and convolutions. What has no work for a register tile (a vector, one channel per group) becomes an
// ordinary reduction or window, which the region machinery vectorises.
#include "synthesis/lower/lower.hpp"

#include <cmath>
#include <optional>

namespace pragma::synthesis {

namespace {

using results = std::vector<int>;

/// The vector on the diagonal [n, 1] when `node` is torch.diag() of one, else -1.
int diagonal_of(node_builder& b, int node) {
  const auto& x = b.at(node);
  if (x.kind != node_kind::pointwise || x.op != operation::select || x.shape.size() != 2) return -1;
  const auto &on = b.at(x.args[0]), &zero = b.at(x.args[2]);
  if (on.op != operation::equal || zero.kind != node_kind::constant || zero.value != 0) return -1;
  const auto &row = b.at(on.args[0]), &column = b.at(on.args[1]);
  const bool diagonal = row.kind == node_kind::index && column.kind == node_kind::index && row.dims[0] == 0 && column.dims[0] == 1;
  return diagonal ? x.args[1] : -1;
}

/// The int8 that `node` widens, shown as `node` shows it, or -1.
int narrow_of(node_builder& b, int node) {
  const tensor_node x = b.at(node); // a copy: the list grows
  if (x.kind == node_kind::pointwise && x.op == operation::convert && b.at(x.args[0]).dtype == dtype::int8) return x.args[0];
  if (x.kind != node_kind::view && x.kind != node_kind::reshape) return -1;
  const int inner = narrow_of(b, x.args[0]);
  if (inner < 0) return -1;
  return x.kind == node_kind::view ? b.view(inner, x.shape, x.map) : b.reshape(inner, x.shape);
}

struct scaled_columns {
  int matrix = -1, scale = -1; ///< [.., k, n] and [.., 1, n]
};

/// A matrix of widened int8, each column of which has a factor of its own.
std::optional<scaled_columns> columns_of_bytes(node_builder& b, int right) {
  const tensor_node shown = b.at(right);
  const bool turned = shown.kind == node_kind::view;
  const tensor_node x = turned ? b.at(shown.args[0]) : shown;
  if (x.kind != node_kind::pointwise || x.op != operation::mul) return std::nullopt;
  const size_t rank = shown.shape.size(), steps = rank - 2;
  for (size_t i : {0u, 1u}) {
    const int bytes = x.args[i], scale = x.args[1 - i];
    if (narrow_of(b, bytes) < 0 || b.at(bytes).shape != x.shape) continue;
    auto own = b.at(scale).shape;
    own.insert(own.begin(), x.shape.size() - own.size(), 1);
    bool along = false; // the factor changes from step to step
    for (size_t d = 0; d < own.size(); ++d) along = along || (own[d] != 1 && (turned ? shown.map[d].out_dim : static_cast<int>(d)) == static_cast<int>(steps));
    if (along) continue;
    const auto show = [&](int of) { return turned ? b.view(of, shown.shape, shown.map) : of; };
    return scaled_columns{show(bytes), b.slice(show(b.expand(scale, x.shape)), static_cast<int64_t>(steps), 0, 1, 1)};
  }
  return std::nullopt;
}

} // namespace

int product(node_builder& b, int left, int right) {
  if (b.algebra && b.loops && b.at(right).dtype == dtype::float32)
    if (const auto of_bytes = columns_of_bytes(b, right)) return b.mul(product(b, left, of_bytes->matrix), of_bytes->scale);
  const auto l = b.at(left).shape, r = b.at(right).shape;
  const auto rank = static_cast<int64_t>(l.size());
  const int64_t m = l[l.size() - 2], k = l.back(), n = r.back();
  auto out = l;
  out.back() = n;
  if (b.extent(left, {rank - 2, rank - 1}) == 0 || n == 0) throw not_lowered{"an empty matrix"};
  if (const int d = b.algebra ? diagonal_of(b, left) : -1; d >= 0) {
    b.note("the product with a diagonal matrix only scales rows: no zeros are multiplied or added");
    return b.mul(d, right);
  }
  if (const int d = b.algebra ? diagonal_of(b, right) : -1; d >= 0) {
    b.note("the product with a diagonal matrix only scales columns: no zeros are multiplied or added");
    return b.mul(left, b.reshape(d, {1, n}));
  }
  if (k == 1) return b.mul(b.expand(left, out), b.expand(right, out));
  if (b.at(left).dtype == dtype::float32 && m > 1 && n > 1) return b.matmul(left, right);
  if (b.loops && b.at(left).dtype == dtype::int32 && m > 1 && n > 1) {
    const int bytes = narrow_of(b, left), others = narrow_of(b, right);
    if (bytes >= 0 && others >= 0) return b.matmul(bytes, others, dtype::int32);
  }
  if (n == 1) { // dot products of rows
    auto swapped = r;
    std::swap(swapped[r.size() - 1], swapped[r.size() - 2]);
    const int row = b.reshape(right, swapped); // [.., k, 1] and [.., 1, k] hold the same elements in the same order
    return b.reduce(operation::sum, b.mul(left, row), {rank - 1});
  }
  if (m == 1) { // a sum of rows, each times a number
    auto swapped = l;
    std::swap(swapped[l.size() - 1], swapped[l.size() - 2]);
    return b.reduce(operation::sum, b.mul(b.reshape(left, swapped), right), {rank - 2});
  }
  // Other dtypes: [.., m, n, k] multiplied and summed.
  std::vector<int64_t> order;
  for (int64_t i = 0; i + 2 < rank; ++i) order.push_back(i);
  order.insert(order.end(), {rank - 1, rank - 2});
  const int columns = b.unsqueeze(b.permute(right, order), rank - 2), rows = b.unsqueeze(left, rank - 1);
  return b.squeeze(b.reduce(operation::sum, b.mul(rows, columns), {rank}), {rank});
}

namespace {

int scaled(node_builder& b, int x, double factor) { return factor == 1 ? x : b.mul(x, b.number(factor, x)); }

/// beta * self + alpha * (a b)
results with_addend(const op_call& c, int value, const char* addend) {
  const double beta = c.number("beta", 1);
  value = scaled(c.b, value, c.number("alpha", 1));
  if (beta == 0) return {value};
  return {c.b.add2(value, scaled(c.b, c.operand(addend, c.result().dtype), beta))};
}

rule matmul_rule(const char* left, const char* right, bool addend) {
  return [=](const op_call& c) -> results {
    const auto type = c.result().dtype;
    const int value = product(c.b, c.operand(left, type), c.operand(right, type));
    return addend ? with_addend(c, value, "self") : results{value};
  };
}

rule matrix_vector(const char* matrix, const char* vector, bool addend) {
  return [=](const op_call& c) -> results {
    const auto type = c.result().dtype;
    const int m = c.operand(matrix, type), v = c.operand(vector, type);
    const auto rank = static_cast<int64_t>(c.b.at(m).shape.size());
    const int value = c.b.squeeze(c.b.reduce(operation::sum, c.b.mul(m, v), {rank - 1}), {rank - 1});
    return addend ? with_addend(c, value, "self") : results{value};
  };
}

/// softmax(scale * q k' + mask) v; heads of k and v may serve several of q.
results attention_rule(const op_call& c) {
  if (c.number("dropout_p", 0) != 0) throw not_lowered{"dropout"};
  auto& b = c.b;
  const int q = c.tensor("query");
  const auto shape = b.at(q).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto shared = [&](int x) { // a head for each of q's
    const auto from = b.at(x).shape;
    const auto head = static_cast<size_t>(rank - 3);
    if (rank < 4 || from[head] == shape[head]) return x;
    auto wide = from, all = from;
    wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(head) + 1, shape[head] / from[head]);
    all[head] = shape[head];
    return b.reshape(b.expand(b.unsqueeze(x, static_cast<int64_t>(head) + 1), wide), all);
  };
  const int k = shared(c.tensor("key")), v = shared(c.tensor("value"));
  std::vector<int64_t> turned;
  for (int64_t i = 0; i + 2 < rank; ++i) turned.push_back(i);
  turned.insert(turned.end(), {rank - 1, rank - 2});
  int scores = scaled(b, product(b, q, b.permute(k, turned)), c.number("scale", 1 / std::sqrt(static_cast<double>(shape.back()))));
  const auto lowest = [&] { return b.number(-INFINITY, scores); };
  if (c.flag("is_causal")) {
    const auto all = b.at(scores).shape;
    const int row = b.index(all, rank - 2), column = b.index(all, rank - 1);
    scores = b.select(b.compare(operation::less_equal, column, row), scores, lowest());
  }
  if (c.has("attn_mask")) {
    const int mask = c.tensor("attn_mask");
    scores = b.at(mask).dtype == dtype::boolean ? b.select(mask, scores, lowest()) : b.add2(scores, b.convert(mask, b.at(scores).dtype));
  }
  const int power = b.unary(operation::exp_nonpositive, b.sub(scores, b.reduce(operation::peak, scores, {rank - 1})));
  const int weights = b.div(power, b.reduce(operation::sum, power, {rank - 1}));
  return {product(b, weights, v), -1};
}

std::vector<int64_t> spread(std::vector<int64_t> values, size_t n, int64_t otherwise) {
  if (values.empty()) return std::vector<int64_t>(n, otherwise);
  if (values.size() == 1) return std::vector<int64_t>(n, values[0]);
  return values;
}

results convolution_rule(const op_call& c) {
  const int x = c.tensor("input"), w = c.tensor("weight");
  if (c.result().dtype != dtype::float32) throw not_lowered{"dtypes other than float32"};
  const auto image = c.b.at(x).shape, weights = c.b.at(w).shape, out = c.result().shape;
  if (image.size() < 3) throw not_lowered{"an image without a batch dimension"};
  const size_t n = image.size() - 2;
  for (auto d : out)
    if (d == 0) throw not_lowered{"an empty image"};
  window_spec spec;
  spec.kernel.assign(weights.begin() + 2, weights.end());
  spec.stride = spread(c.integers("stride"), n, 1);
  spec.padding = spread(c.integers("padding"), n, 0);
  spec.dilation = spread(c.integers("dilation"), n, 1);
  const int64_t groups = c.integer("groups", 1);
  const bool transposed = c.flag("transposed");
  int y = -1;
  bool plain = groups == 1 && !transposed;
  for (size_t i = 0; i < n; ++i) plain = plain && spec.kernel[i] == 1 && spec.stride[i] == 1 && spec.padding[i] == 0;
  if (!transposed && groups > 1 && groups == image[1] && groups == out[1]) {
    y = c.b.window(operation::sum, x, spec, out, w);
  } else if (plain && image[1] > 1 && out[1] > 1 && c.b.at(x).elements() > image[0] * image[1]) {
    // A convolution by single points is a matrix product for each image.
    const int64_t pixels = c.b.at(x).elements() / image[0] / image[1];
    const int flat = c.b.reshape(x, {image[0], image[1], pixels});
    const int matrix = c.b.expand(c.b.reshape(w, {1, out[1], image[1]}), {image[0], out[1], image[1]});
    y = c.b.reshape(c.b.matmul(matrix, flat, dtype::float32, c.node().rounding), out);
  } else {
    y = c.b.convolution(x, w, spec, groups, transposed, out, c.node().rounding);
  }
  if (!c.has("bias")) return {y};
  std::vector<int64_t> per_channel(out.size(), 1);
  per_channel[1] = out[1];
  return {c.b.add2(y, c.b.reshape(c.tensor("bias"), per_channel))};
}

results diagonal_matrix(const op_call& c, const char* offset) {
  const int x = c.tensor("self");
  if (c.b.at(x).shape.size() != 1 || c.integer(offset) != 0) throw not_lowered{"anything but the main diagonal of a new matrix"};
  const auto shape = c.result().shape;
  const int on = c.b.compare(operation::equal, c.b.index(shape, 0), c.b.index(shape, 1));
  return {c.b.select(on, c.b.unsqueeze(x, 1), c.b.number(0, x))};
}

} // namespace

void add_anchor_rules(rule_table& t) {
  t["aten.mm"] = matmul_rule("self", "mat2", false);
  t["aten.bmm"] = t["aten.mm"];
  t["aten._int_mm"] = t["aten.mm"];
  t["aten.addmm"] = matmul_rule("mat1", "mat2", true);
  t["aten.baddbmm"] = matmul_rule("batch1", "batch2", true);
  t["aten.mv"] = matrix_vector("self", "vec", false);
  t["aten.addmv"] = matrix_vector("mat", "vec", true);
  t["aten.dot"] = matrix_vector("self", "tensor", false);
  for (const char* op : {"scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
                         "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention"})
    t[std::string("aten.") + op] = attention_rule;
  t["aten.convolution"] = convolution_rule;
  t["aten.diag"] = [](const op_call& c) { return diagonal_matrix(c, "diagonal"); };
  t["aten.diag_embed"] = [](const op_call& c) { return diagonal_matrix(c, "offset"); }; // what newer Torch makes of diag()
}

} // namespace pragma::synthesis
