// Anchors: matrix products and convolutions as one register-blocked contraction. Which pointwise values follow an anchor
// closely enough to be computed on its tiles, and how its loops are laid out. Used by region.cpp and the emitters.
#pragma once

#include "synthesis/ir/tensor_ir.hpp"

#include <map>
#include <optional>

namespace pragma::synthesis {

struct region;
struct index_form;

/// By anchor node: the last pointwise node through which all of its results go (the anchor itself when there is none).
/// Everything between is computed on the anchor's tiles.
std::map<int, int> anchor_tails(const tensor_program& program);

/// For each node: does it depend on `anchor`?
std::vector<bool> depends_on(const tensor_program& program, int anchor);

/// Merges the column axes (and the row axes) of a region with a contraction into one each, and makes the columns those
/// that memory stores side by side. False when what follows the anchor does not walk memory that way.
bool arrange_contraction(region& r);

/// What follows keeps one side of a diagonal of the product and `beyond` on the other, zeros for one: tiles there need no multiplication.
struct triangle {
  bool upper = true;
  int64_t diagonal = 0; ///< kept: column >= row + diagonal (upper) or column <= row + diagonal
};
std::optional<triangle> triangle_of(const region& r, double beyond = 0);

/// One residue class of the output positions of a transposed convolution: a plain correlation with some of the taps.
struct phase_dim {
  int64_t first = 0, count = 0;                    ///< output positions first, first + stride, ...
  std::vector<std::pair<int64_t, int64_t>> taps;   ///< (tap, offset of the image position for output position `first`)
};

/// By dimension; a convolution that is not transposed has one class with all taps.
std::vector<phase_dim> phases_of(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool transposed);

} // namespace pragma::synthesis
