// One contraction as Triton kernels: tiles of BLOCK_M x BLOCK_N results, a loop over k, and what follows on the tile. Operands
// come from memory as they lie; convolutions find their image elements by index arithmetic, so no patches are stored.
// triton_anchor.cpp has what all contractions share, triton_matmul.cpp and triton_convolution.cpp the loops over k.
#pragma once

#include "synthesis/schedule/schedule.hpp"
#include "synthesis/triton/emit.hpp"
#include "synthesis/triton/values.hpp"

namespace pragma::synthesis {

/// One spatial dimension of a convolution. Output position = first + pixel * out_step. Tap number j of `taps` is tap
/// first_tap + j * tap_step of the weights and meets the image at (pixel * in_step + origin + j * step) / divisor, where that
/// divides. In a strided transposed convolution `first`, `first_tap`, `origin`, `taps` depend on the residue of the output
/// position modulo the stride: one value for each.
struct triton_dim {
  image_dim of;
  int64_t pixels = 1;        ///< of the residue that has most
  int64_t in_step = 1, out_step = 1, step = 1, tap_step = 1, divisor = 1;
  std::vector<int64_t> first, first_tap, origin, taps;
  bool guarded = false;      ///< some tap may lie outside of the image
  bool ragged = false;       ///< some residue has fewer pixels
  int64_t residues() const { return static_cast<int64_t>(first.size()); }
};

/// The dimensions of a convolution. `by_residue`: the last dimension of a strided transposed one is computed residue by
/// residue; else side by side, where taps that miss a position multiply zeros, but results lie side by side in memory.
std::vector<triton_dim> triton_dims(const contraction& c, bool by_residue);
/// A step of k stays within one tap: there are enough channels to fill it.
bool steps_within_taps(int64_t channels);

class anchor_emitter {
public:
  anchor_emitter(const loop_program& program, const region& r, const triton_region_schedule& s, size_t number, size_t kept);
  triton_kernel kernel();

private:
  // -- triton_anchor.cpp
  void tiles();                                  ///< number of the program -> batch, part of k, m, n
  void bind_batch(triton_values& v, const std::string& mask);
  void finish();                                 ///< what follows, or the sums of this part of k
  void store_tile(const store& s);
  void combine(triton_kernel& k);
  int anchor_expression() const;
  std::string parameters(const triton_values& v, const std::string& more) const;
  std::string arguments(const triton_values& v) const;
  std::string grid() const;
  std::string description() const;
  std::string base(int buffer, index_form f);    ///< pointer to this batch element
  /// name = tl.load(..), zero where a mask is false; `transposed`: the tile lies the other way round in memory.
  void load_tile(const std::string& name, const std::string& at, const std::vector<std::string>& masks, bool transposed);
  void begin_sum();
  /// `columns`: the tile [k, columns]; split factors lie in two halves of memory.
  void load_columns(const std::string& at, const std::vector<std::string>& masks, bool transposed);
  void dot();                                    ///< adds rows * columns to the sum
  bool divides(int64_t extent, int64_t triton_block::*size) const; ///< whole tiles with every choice of blocks
  int64_t largest_steps() const;
  int64_t extent(int axis) const { return r_.axes[static_cast<size_t>(axis)].extent; }
  std::string mask(const std::string& index, int64_t extent, int64_t triton_block::*size) const; ///< empty where tiles are whole
  std::string m_mask() const { return mask("m[:, None]", m_, &triton_block::lanes); }
  std::string n_mask() const { return mask("n[None, :]", n_, &triton_block::columns); }
  std::string rounded(const std::string& values);
  /// Adds the call of a kernel that lays out a factor anew, of parameters when they are loaded.
  void lay_out(triton_kernel& k, const std::string& kernel, int buffer, int64_t elements, int64_t programs, const std::string& end);

  // -- triton_matmul.cpp
  /// One factor of a matrix product, along m or along n.
  struct factor {
    int buffer = -1;
    index_form at;
    int outer = -1;                              ///< its axis beside k
    std::string index;                           ///< "m" or "n"
    int64_t extent = 1;
    int64_t triton_block::*size = nullptr;
  };
  void plan_matmul();
  void matmul();
  void load_factor(const factor& f, bool rows, const std::string& k0, const std::string& rest);
  bool along_k(const factor& f, bool rows) const; ///< neighbours in memory are neighbours along k
  void lay_out_factor(triton_kernel& k);
  int64_t batches_of(const factor& f) const;

  // -- triton_convolution.cpp
  void plan_convolution();
  void convolution();
  void residues();
  void pixels();
  void bind_strided_pixels();
  void coordinates(const std::string& tap);
  std::string shift() const;
  std::string weight_of_tap(const std::vector<int64_t>& strides) const;
  std::string guards(bool matrix);
  std::string quotients(bool matrix) const;
  void open_steps(const std::string& steps);     ///< the loop over this program's part of the steps
  void loop_within_taps(const std::string& taps);
  void loop_over_mixed_taps(const std::string& taps);
  bool packs() const;                            ///< weights are laid out anew: [group, tap, m, channel], or [group, m, k] for mixed taps
  void pack_weights(triton_kernel& k);
  std::string weights_base();
  void load_weights(const std::string& at, const std::vector<std::string>& masks, bool along_m);
  int64_t taps_of_kernel() const;
  /// A number, or the name of the scalar where it differs between residues.
  std::string of_residue(size_t dim, const std::string& what, const std::vector<int64_t>& values) const;

  const loop_program& p_;
  const region& r_;
  const contraction& c_;
  const triton_region_schedule& s_;
  triton_values v_;
  std::string name_, suffix_, kept_;
  int64_t m_ = 1, n_ = 1, k_ = 1;                ///< of one batch element (and residue); k_ of the one with most taps
  int64_t batches_ = 1, residues_ = 1;
  int64_t chunks_ = 1, chunk_ = 0;               ///< parts of k, and the elements of each
  bool wide_ = false;                            ///< element numbers need 64 bits
  std::vector<triton_dim> dims_;
  int64_t channels_ = 1;
  bool within_taps_ = false;
  bool columns_are_m_ = false;                   ///< the loop's tile is [n, m]: tensor cores read the second factor along k, float32 units along its columns
  bool halves_ = false;                          ///< both factors lie in memory in one half type: the tensor cores' own products
  bool widens_ = false;                          ///< one of them does: it is multiplied in float32
  bool laid_out_ = false;                        ///< the second factor lies along k, rounded or split by a kernel of its own
  bool split_ = false;                           ///< and factors are sums of two TF32 numbers
  int64_t packed_half_ = 0, packed_k_ = 0;       ///< elements of each of the two, and of a row of it
  factor rows_, columns_;
  std::vector<std::pair<std::string, std::string>> extra_; ///< parameters that are no buffers, and their arguments
};

} // namespace pragma::synthesis
