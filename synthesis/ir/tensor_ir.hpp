// Tensor-level primitives that aten operators are decomposed into: a small functional language in which fusion is
// possible. lower() makes it, build_program() turns it into loop regions.
#pragma once

#include "synthesis/ir/graph.hpp"
#include "synthesis/ir/hashing.hpp"
#include "synthesis/ir/operators.hpp"

namespace pragma::synthesis {

enum class node_kind {
  leaf,      ///< a tensor in memory: buffer
  constant,  ///< value, everywhere
  index,     ///< the index along dims[0] (int64)
  pointwise, ///< op over args, which broadcast like in Torch
  view,      ///< affine: source index d = map[d].offset + map[d].step * index[map[d].out_dim]
  reshape,   ///< same elements in the same linear order
  reduce,    ///< op over dims, which stay as size 1
  scan,      ///< op along dims[0]; of decayed_sum h[t] = args[1][t] * h[t - 1] + args[0][t], with nothing before the first
  window,    ///< op over a sliding window of the last dimensions; a second argument holds weights [channel, 1, taps..]
  concat,    ///< args one after the other along dims[0]
  pick,      ///< args[0] at position args[1] along dims[0]; args[1] broadcasts to the result
  scatter,   ///< args[0], with each element of args[2] joined by op (sum, prod, max, min) at position args[1] along dims[0], which is left out where it lies outside
  recurrence, ///< op over steps in order: the states before the first step and after each, of an LSTM the last cell state behind; args as node_builder::recurrence() has them
  anchor     ///< matmul of args [.., m, k] and [.., k, n], or convolution of image and weights (window, groups, transposed)
};

struct source_dim {
  int64_t offset = 0, step = 1;
  int out_dim = -1; ///< -1: always `offset`
  bool operator==(const source_dim&) const = default;
  void hash_into(hasher& h) const { h(offset)(step)(out_dim); }
};

struct window_spec {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool operator==(const window_spec&) const = default;
  void hash_into(hasher& h) const { h(kernel)(stride)(padding)(dilation); }
};

/// Half types are formats of memory: what is loaded widens, what is stored is rounded, and all arithmetic is float32.
inline bool is_half(dtype type) { return type == dtype::float16 || type == dtype::bfloat16; }
inline dtype computed_in(dtype type) { return is_half(type) ? dtype::float32 : type; }

struct tensor_node {
  node_kind kind = node_kind::constant;
  pragma::dtype dtype = pragma::dtype::float32; ///< what it is computed in: never a half type
  pragma::dtype held_as = pragma::dtype::float32; ///< of a float32 value that Torch holds in a half type: the format between regions
  std::vector<int64_t> shape;
  std::vector<int> args;
  operation op = operation::none;
  double value = 0;
  std::vector<int64_t> dims;
  std::vector<source_dim> map;
  window_spec window;       ///< also of convolutions
  int64_t groups = 1;       ///< convolutions
  bool transposed = false;
  tf32_rounding rounding = tf32_rounding::none; ///< of the factors of an anchor, where Torch rounds them
  int buffer = -1;
  int64_t elements() const {
    int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  /// All fields alike: one node serves for both.
  bool operator==(const tensor_node& other) const;
  void hash_into(hasher& h) const;
};

enum class buffer_kind { input, param, output, constant, scratch };

struct buffer {
  buffer_kind kind = buffer_kind::scratch;
  int index = 0; ///< among its kind
  pragma::dtype dtype = pragma::dtype::float32;
  int64_t elements = 0;
  bool of_item = false;       ///< scratch of one batch element, rewritten for each
  std::vector<double> values; ///< constants
  std::string name;           ///< in the emitted source: "x0", "p1", "out0", "scratch2"
};

/// What the reference computes, as primitives.
struct tensor_program {
  std::vector<tensor_node> nodes;
  std::vector<buffer> buffers;
  std::vector<int> outputs;           ///< node of each output
  std::vector<std::string> ops;       ///< aten names in order, for headers and messages
  std::vector<std::string> redundant; ///< work that has no effect, in words
};

} // namespace pragma::synthesis
