// Convolutions as matrix products: m are the output channels of a group, n the output pixels of one image, k the input channels
// times taps. Where the padded copy of an image lies, which outputs form a phase, and where each tap meets the image and its
// weights: numbers only, so that tests can compute with them. convolution.cpp writes loops over them.
#pragma once

#include "synthesis/loops/region.hpp"

#include <array>

namespace pragma::synthesis {

/// The copy of an image inside of its border of zeros: how far each dimension is padded, and the strides of the copy.
struct padded_image {
  std::array<int64_t, 3> before{}, extent{1, 1, 1}, stride{0, 0, 1};
  int64_t step = 1;     ///< of the last dimension in the convolution: columns of one residue lie side by side
  int64_t lane_row = 1; ///< elements of one residue
  int64_t channel = 1;
  /// Where a position of dimension `d` lies; positions count from the border's first.
  int64_t at(size_t d, int64_t position) const { return d < 2 ? position * stride[d] : position % step * lane_row + position / step; }
};

/// A row of taps (one plane and row of the kernel), and the pixels that it has something to add to: planes and rows of pixels from `begin` to
/// before `end`. To the others it adds zeros of the border.
struct tap_row {
  std::array<int64_t, 2> begin{}, end{};
  bool meets(int64_t plane, int64_t row) const { return plane >= begin[0] && plane < end[0] && row >= begin[1] && row < end[1]; }
};

/// Output pixels of one residue in planes and rows. Those of all residues in columns belong to it, each with taps of its own:
/// they are computed side by side and interleaved when they are stored.
struct convolution_phase {
  std::vector<int32_t> image, weight; ///< per tap: the element of the copy for the first pixel, and of the weights
  std::vector<int64_t> taps;          ///< how many each residue of columns has
  std::vector<tap_row> rows;          ///< in the order of the taps
  std::array<int64_t, 3> count{1, 1, 1}, first{};
};

struct convolution_plan {
  std::array<image_dim, 3> dims;      ///< always three; the leading ones may be of extent 1
  padded_image image;
  std::vector<convolution_phase> phases;
  int64_t residues = 1;               ///< of columns, in each phase
  int64_t taps = 0;                   ///< of all phases and residues
  int64_t longest = 1;                ///< taps of one residue, at most
  std::array<int64_t, 3> in_stride{}, out_stride{}; ///< of memory; out_stride only where results are stored with strides
  /// Image positions that neighbouring pixels of a dimension lie apart.
  int64_t pixel_step(size_t d) const { return transposed ? 1 : dims[d].stride; }
  bool transposed = false;
};

convolution_plan plan_convolution(const region& r);

/// The share of rows of taps that are left where each tile of so many pixels leaves out those that meet the border only. Of convolutions with one phase.
double rows_met(const convolution_plan& plan, int64_t tile_pixels);

} // namespace pragma::synthesis
