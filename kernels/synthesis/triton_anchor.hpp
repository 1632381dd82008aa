// One contraction as Triton kernels: tiles of BLOCK_M x BLOCK_N results, a loop over k, and what follows on the tile. Operands
// come from memory as they lie; convolutions find their image elements by index arithmetic, so no patches are stored.
// triton_anchor.cpp has what all contractions share, triton_matmul.cpp and triton_convolution.cpp the loops over k.
#pragma once

#include "kernels/synthesis/schedule.hpp"
#include "kernels/synthesis/triton_emit.hpp"
#include "kernels/synthesis/triton_values.hpp"

namespace pragma::synthesis {

class anchor_emitter {
public:
  anchor_emitter(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number);
  triton_kernel kernel();

private:
  /// One spatial dimension of a convolution in a kernel. Output position = first + pixel * out_step; tap number j (of
  /// `taps`) meets the image at `pixel * in_step + origin + j * step`. What depends on the residue of a transposed
  /// convolution is the name of a scalar in the kernel, else a number.
  struct spatial_dim {
    image_dim of;
    int64_t pixels = 1;          ///< in the tile's space
    int64_t out_step = 1, in_step = 1, step = 1, tap_step = 1;
    std::string first = "0", origin = "0", taps = "1", first_tap = "0";
    int64_t residues = 1;
    int64_t divisor = 1;         ///< not 1: image position = (that) / divisor where it divides evenly
    bool guarded = false;        ///< some tap lies outside of the image
    bool ragged = false;         ///< some residue has fewer pixels than `pixels`
    int64_t most_taps = 1;
  };

  // -- triton_anchor.cpp
  void tiles();                                  ///< program number -> batch, chunk, m, n
  void bind_axes();
  void finish();                                 ///< what follows, or the partial sums of this chunk
  void combine(triton_kernel& k);                ///< second kernel: the chunks' sums, then what follows
  std::string parameters(const triton_values& v, const std::vector<std::string>& more) const;
  std::string arguments(const triton_values& v) const;
  std::string grid() const;
  std::string base(int buffer, const index_form& f, const std::vector<int>& without); ///< pointer at the tile's batch element
  void load_tile(const std::string& name, const std::string& at, const std::vector<std::string>& masks);
  bool divides(int64_t extent, int64_t triton_block::*size) const; ///< whole tiles in all configurations
  int64_t extent(int axis) const { return r_.axes[static_cast<size_t>(axis)].extent; }
  std::string m_mask(bool column) const;         ///< "m[:, None] < 100", empty where tiles are whole
  std::string n_mask(bool row) const;
  void dot(const std::string& a, const std::string& b);

  // -- triton_matmul.cpp
  void matmul();
  std::string operand(const std::string& name, int buffer, const index_form& f, int outer, const std::string& outer_name, bool first);

  // -- triton_convolution.cpp
  void plan_convolution();
  void convolution();
  void residues();                               ///< scalars of the residue class of this program
  void pixels();                                 ///< n -> positions in the image
  void tap_scalars(const std::string& tap, bool vectors);
  void step_of_one_tap();
  void step_of_mixed_taps();
  std::string where_in_image(const spatial_dim& d, size_t i, bool matrix) const;
  void pack_weights(triton_kernel& k);
  bool packs() const;                            ///< weights are copied to [group, tap, m, channel] first
  std::string of_residue(const std::string& residue, const std::vector<int64_t>& values) const;

  const loop_program& p_;
  const region& r_;
  const contraction& c_;
  const triton_region_schedule& s_;
  triton_values v_;
  std::string name_, suffix_;
  int64_t m_ = 1, n_ = 1, k_ = 1;                ///< of one batch element; n_: pixels of one residue class
  int64_t batches_ = 1, residues_ = 1;
  int64_t chunks_ = 1, chunk_ = 0;               ///< parts of k, and the steps of each
  std::vector<spatial_dim> dims_;
  bool one_tap_ = false;                         ///< a step of k lies within one tap, else channels and taps are mixed
  std::vector<std::string> extra_parameters_, extra_arguments_;
};

} // namespace pragma::synthesis
