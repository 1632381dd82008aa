// aten operators -> primitives (tensor_ir.hpp). One row per operator: pointwise.cpp, reductions.cpp and so on register
// theirs in the table. Used by builtin_coder::create.
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

#include <functional>
#include <optional>

namespace pragma::synthesis {

/// unsupported: names every operator (or form of one) that cannot be lowered yet.
/// `algebra`: a product with a diagonal matrix becomes a scaling. `loops`: the writer has loops over time (C++); else the steps of a recurrent layer are written out.
expected<tensor_program> lower(const graph& g, bool algebra = true, bool loops = true);

/// For each node: why it cannot be lowered where everything that it reads is there ("aten.topk has no rule"); nothing where it can.
std::vector<std::optional<std::string>> not_lowered_alone(const graph& g, bool loops = true);

/// The table of docs/operators.md: every operator that has a rule.
std::string lowered_operators();

/// Thrown by a lowering rule when the form of an operator is not covered; lower() turns it into the expected error.
struct not_lowered {
  std::string what;
};

/// Builds primitives; equal ones are made once, so that fusion sees that two uses share a value.
class node_builder {
public:
  explicit node_builder(tensor_program& program, bool algebra_wanted = true, bool loops_wanted = true) : algebra(algebra_wanted), loops(loops_wanted), program_(program) {}

  const bool algebra; ///< rules may take a way with fewer operations than the reference's
  const bool loops;   ///< there may be recurrences
  bool exact_scans = false; ///< running sums of float32 in float64: exponentials follow, which make relative errors of absolute ones

  const tensor_node& at(int node) const { return program_.nodes[static_cast<size_t>(node)]; }
  int add(tensor_node node);
  int constant(double value, dtype type, std::vector<int64_t> shape = {});
  int leaf(int buffer, const tensor_type& type);
  int convert(int node, dtype type);
  /// Rounded to what a half type can hold, and computed with in float32.
  int rounded_to(dtype half, int node);
  /// The same value, of which it is known that Torch holds it in a half type.
  int held_as(dtype half, int node);
  /// op over args that already have the type that it computes in; the shape is the broadcast one.
  int pointwise(operation op, dtype result, std::vector<int> args);
  /// maximum, minimum, fmax or fmin of two of one dtype; of truth values the operator of bits that does the same.
  int extreme(operation op, int a, int b);
  int index(std::vector<int64_t> shape, int64_t dim, dtype type = dtype::int64);
  /// Numbers that are known when the graph is: a constant of the kernel, row-major.
  int table(const std::vector<double>& values, dtype type, std::vector<int64_t> shape);

  int view(int node, std::vector<int64_t> shape, std::vector<source_dim> map);
  int reshape(int node, std::vector<int64_t> shape);
  int permute(int node, const std::vector<int64_t>& order);
  int expand(int node, const std::vector<int64_t>& shape);
  int slice(int node, int64_t dim, int64_t start, int64_t step, int64_t count);
  int flip(int node, const std::vector<int64_t>& dims);
  int unsqueeze(int node, int64_t dim);
  int squeeze(int node, std::vector<int64_t> dims);

  int reduce(operation op, int node, std::vector<int64_t> dims);
  int scan(operation op, int node, int64_t dim);
  /// h[t] = decay[t] * h[t - 1] + given[t] along a dimension, h[0] = given[0]; both of one shape.
  int decayed_sum(int given, int decay, int64_t dim);
  /// `weights` [channel, 1, taps..], or -1: factors of the positions of a window. A sum with them is a depthwise convolution.
  int window(operation op, int node, window_spec spec, const std::vector<int64_t>& out, int weights = -1);
  /// [.., m, k] x [.., k, n], batch dimensions equal; summed up in `sums`, which is int32 for factors of int8
  int matmul(int a, int b, dtype sums = dtype::float32, tf32_rounding rounding = tf32_rounding::none);
  int convolution(int image, int weights, window_spec spec, int64_t groups, bool transposed, const std::vector<int64_t>& out,
                  tf32_rounding rounding = tf32_rounding::none);
  /// A layer over T steps of B rows with H units and G = gates_of(op): what its input gives [T, B, G, H], the state's weights [G, H, H], the first state [B, H],
  /// of an LSTM the first cell state [B, H], the state's bias [G, H] or -1. The result is [T + 1, B, H], of an LSTM [T + 2, B, H] (tensor_ir.hpp).
  int recurrence(operation op, int given, int weights, int state, int cell, int bias);
  int concat(std::vector<int> nodes, int64_t dim);
  int pick(int node, int64_t dim, int position);
  /// `self` with `values` joined by op (sum, prod, max, min) at their `places` along a dimension: int64, of the values' shape. Those outside of the extent are left out. In the
  /// other dimensions `values` may be shorter than `self`.
  int scatter(operation op, int self, int64_t dim, int places, int values);
  /// Elements at `places` (int64, within the extent) along a dimension, which becomes the dimensions of `places`.
  int take(int node, int64_t dim, int places);

  // Shorthands; args of equal dtype.
  int add2(int a, int b) { return pointwise(operation::add, at(a).dtype, {a, b}); }
  int sub(int a, int b) { return pointwise(operation::sub, at(a).dtype, {a, b}); }
  int mul(int a, int b) { return pointwise(operation::mul, at(a).dtype, {a, b}); }
  int div(int a, int b) { return pointwise(operation::div, at(a).dtype, {a, b}); }
  int unary(operation op, int a) { return pointwise(op, at(a).dtype, {a}); }
  int compare(operation op, int a, int b) { return pointwise(op, dtype::boolean, {a, b}); }
  int select(int condition, int a, int b) { return pointwise(operation::select, at(a).dtype, {condition, a, b}); }
  int number(double value, int like) { return constant(value, at(like).dtype); }
  /// Sum over dims divided by their extent; NaN for an empty one, as in Torch.
  int mean(int node, const std::vector<int64_t>& dims);
  int64_t extent(int node, const std::vector<int64_t>& dims) const;
  /// Work of the reference that has no effect, in words.
  void note(const std::string& redundant) { program_.redundant.push_back(redundant); }

private:
  tensor_program& program_;
  places_of<tensor_node> known_;
  std::vector<int> concats_;
};

/// What a rule gets: the call, its arguments as primitives, and the builder.
class op_call {
public:
  op_call(node_builder& builder, const graph_node& node, const std::map<std::string, int>& values)
      : b(builder), node_(node), values_(values) {}

  node_builder& b;
  const graph_node& node() const { return node_; }
  const tensor_type& result(size_t i = 0) const { return node_.results.at(i); }
  bool has(const char* name) const { return node_.args.contains(name) && !node_.args.at(name).is_null(); }
  bool is_tensor(const char* name) const;
  int tensor(const char* name) const;                       ///< must be a tensor
  int tensor_at(const json& ref) const;
  int operand(const char* name, dtype type) const;          ///< tensor or number, converted
  double number(const char* name, double otherwise = 0) const;
  int64_t integer(const char* name, int64_t otherwise = 0) const;
  bool flag(const char* name, bool otherwise = false) const;
  std::vector<int64_t> integers(const char* name) const;    ///< a single integer is a list of one
  /// dims in [0, rank); all of them when the argument is absent or (with empty_is_all) empty
  std::vector<int64_t> dims(const char* name, int tensor, bool empty_is_all = true) const;
  int64_t dim(const char* name, int tensor) const;

private:
  const graph_node& node_;
  const std::map<std::string, int>& values_;
};

/// A rule returns one node per result; -1 for a result that it does not make.
using rule = std::function<std::vector<int>(const op_call&)>;
using rule_table = std::map<std::string, rule>;

void add_pointwise_rules(rule_table& table);
void add_view_rules(rule_table& table);
void add_scatter_rules(rule_table& table);
void add_reduction_rules(rule_table& table);
void add_norm_rules(rule_table& table);
void add_loss_rules(rule_table& table);
void add_window_rules(rule_table& table);
void add_patch_rules(rule_table& table);
void add_resizing_rules(rule_table& table);
void add_anchor_rules(rule_table& table);
void add_recurrent_rules(rule_table& table);

/// a [.., m, k] times b [.., k, n] of one dtype; batch dimensions are equal.
int product(node_builder& b, int left, int right);

/// Averages (sum) or maxima (max) over `out` windows that cover a dimension as evenly as adaptive pooling wants it.
int adaptive_along(node_builder& b, int x, operation op, int64_t dim, int64_t out);

/// The dtype in which two types meet, as Torch promotes tensors of equal rank.
dtype promoted(dtype a, dtype b);

} // namespace pragma::synthesis
