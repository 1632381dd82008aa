// Loop regions: what the emitter turns into loop nests. build_program() pulls each output through the primitives and fuses
// whatever can be computed in one nest: pointwise chains, every reduction over the same axes ("row program": passes over
// the reduced axes, row by row), scans, windows. What cannot be fused is stored in a scratch buffer by a region of its own.
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

#include <optional>
#include <tuple>

namespace pragma::synthesis {

/// offset + sum of coefficient * axis (+ step * value of a computed index)
struct index_form {
  int64_t offset = 0;
  std::vector<std::pair<int, int64_t>> terms; ///< (axis, coefficient), sorted by axis, no zero coefficients
  int dynamic = -1;                           ///< expression that adds dynamic_step * its value
  int64_t dynamic_step = 0;

  int64_t coefficient(int axis) const {
    for (const auto& [a, c] : terms)
      if (a == axis) return c;
    return 0;
  }
  bool constant() const { return terms.empty() && dynamic < 0; }
  auto operator<=>(const index_form&) const = default;
  void hash_into(hasher& h) const { h(offset)(terms)(dynamic)(dynamic_step); }
};

/// Position k of a sliding window counts only where 0 <= stride * o + dilation * k - padding < limit.
struct window_guard {
  int output_axis = -1; ///< o; -1: no guard needed
  int64_t stride = 1, dilation = 1, padding = 0, limit = 0;
  bool operator==(const window_guard&) const = default;
};

struct axis {
  int64_t extent = 1;
  bool reduced = false; ///< passes run over it
  bool window = false;  ///< a position within a sliding window
  bool contracted = false; ///< summed over by the anchor, or merged into another axis of it: no loop of its own
  window_guard guard;
};

enum class expr_kind { load, constant, index, op, reduce, scan, anchor };

struct expr {
  expr_kind kind = expr_kind::constant;
  pragma::dtype dtype = pragma::dtype::float32;
  operation op = operation::none;
  std::vector<int> args;   ///< a load's only argument is its computed index
  double value = 0;
  int buffer = -1;
  identity outside = identity::none; ///< loads under a window: what positions outside of the input give; each window has loads of its own
  index_form at;           ///< load: element; index: value; reduce argmax/argmin: the position that counts
  uint32_t axes = 0;       ///< bit per axis that the value depends on

  /// The same value: all that it is made from is equal. The axes follow from the rest.
  bool operator==(const expr& other) const {
    return std::tie(kind, dtype, op, args, buffer, outside, at) == std::tie(other.kind, other.dtype, other.op, other.args, other.buffer, other.outside, other.at) &&
           same_bits(value, other.value);
  }
  void hash_into(hasher& h) const { h(kind)(dtype)(op)(args)(value)(buffer)(outside)(at); }
};

/// Of a scattering store the value is operation::placed: what it brings, and the place, which adds `step` elements for each position of [0, limit) and leaves the store out elsewhere.
/// The axis along which places are counted is a reduced one, so that nothing else writes there at the same time and everything comes in order.
struct store {
  int buffer = -1;
  index_form at;
  int value = -1;
  operation join = operation::none; ///< sum, prod, max, min: with what is there
  int64_t step = 0, limit = 0;
  bool scatters() const { return join != operation::none; }
};

/// One spatial dimension of a convolution.
struct image_dim {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
  int in_axis = -1, tap_axis = -1, out_axis = -1;
};

/// c[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]. Of a convolution a are the weights (m: output channels)
/// and b the image (n: output pixels, k: input channels of the group, then taps). Of a recurrence a are the states before a step (at first the buffer of the first state)
/// and b the weights; m are rows of the batch, n units; the only axis of the batch are planes of states, which steps fill in order. What else it reads are loads, the arguments of its expression:
/// what the input gives, the first cell state (LSTM), the state's bias (may be missing).
struct contraction {
  operation op = operation::matmul; ///< or convolution, or one of the recurrences
  int a = -1, b = -1;         ///< buffers
  index_form a_at, b_at;      ///< elements, over loop axes, k, taps and image positions
  std::vector<int> batch;     ///< loop axes outside
  int group = -1;             ///< the one of them that counts groups, or -1
  std::vector<int> m, n;      ///< one axis each once arranged; n has several for a strided transposed convolution
  int k = -1;
  int steps = -1, gates = -1; ///< axes of a recurrence: its steps, and the gates of each unit
  std::vector<image_dim> dims;
  bool transposed = false;
  tf32_rounding rounding = tf32_rounding::none; ///< of both factors, where Torch rounds them
  bool recurrent() const { return gates >= 0; }
  bool strided_store() const {
    bool strided = false;
    for (const auto& d : dims) strided = strided || d.stride > 1;
    return transposed && strided;
  }
};

/// In a block of rows beside a diagonal, columns from rounded_up(block * rows + beyond) on are masked out for all of them.
struct column_bound {
  int64_t rows = 0, beyond = 0, columns = 0;
  int64_t step = 16; ///< the bound is a multiple: whole vectors
};

struct region {
  std::vector<axis> axes;  ///< in loop order, outermost first
  std::vector<expr> exprs; ///< arguments come before uses
  std::vector<store> stores;
  int scan_axis = -1;
  std::optional<contraction> anchor;
  int host = -1; ///< the region in whose batch loop this one runs (batches.hpp), or -1
  int item = -1; ///< the axis that this batch loop stands for
  bool by_row_blocks = false; ///< a product whose batch elements are blocks of rows (row_blocks.hpp); the last axis of its batch counts them
  std::optional<column_bound> bound; ///< of the product in whose loop others run
  int bounded_axis = -1; ///< the axis of which positions from the bound on count for nothing
  bool has_window() const {
    for (const auto& a : axes)
      if (a.window) return true;
    return false;
  }
  bool has_reduce() const {
    for (const auto& e : exprs)
      if (e.kind == expr_kind::reduce) return true;
    return false;
  }
  bool scatters() const {
    for (const auto& s : stores)
      if (s.scatters()) return true;
    return false;
  }
  uint32_t reduced_mask() const {
    uint32_t mask = 0;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i].reduced) mask |= 1u << i;
    return mask;
  }
};

struct loop_program {
  std::vector<buffer> buffers;
  std::vector<region> regions; ///< in order of execution
  std::vector<std::string> ops, redundant;
  std::vector<std::vector<int64_t>> output_shapes;
};

/// unsupported: a combination that no region can hold (names it). `batches`: join_batches(), for processors with caches to keep
/// one batch element in.
expected<loop_program> build_program(const tensor_program& program, bool batches = true);

/// Which expressions are needed for `roots`; and for what a region stores.
std::vector<bool> needed_for(const region& r, const std::vector<int>& roots);
std::vector<bool> live_exprs(const region& r);

/// Orders the axes by stride (outermost first), merges neighbours that are walked alike, drops axes of extent 1.
/// `inner`: the old number of an axis that must end up last of its kind, or -1.
void order_axes(region& r);

} // namespace pragma::synthesis
