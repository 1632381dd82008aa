// One region's loop nest as text. Two shapes: row mode (the vector axis lies inside the passes: reductions along the
// contiguous dimension, and everything pointwise) and column mode (the vector axis lies outside: each lane is a row).
#pragma once

#include "kernels/synthesis/emit.hpp"
#include "kernels/synthesis/passes.hpp"

#include <functional>
#include <sstream>

namespace pragma::synthesis {

class region_emitter {
public:
  region_emitter(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, size_t number);
  std::string text(const std::string& followers);

private:
  // -- structure (emit_region.cpp)
  void outer_loops(const std::function<void()>& body);
  void row_mode();
  void row_pass(int pass);
  void row_loops(size_t depth, int pass);
  void row_nest(size_t depth, int pass, bool second);
  void row_block(size_t depth, int pass);
  void vector_loop(int pass, bool second);
  std::string row_arguments(int pass, bool second, const std::string& part) const;
  void prefetches(int pass);
  void column_mode();
  void column_pass(int pass);
  void column_block(size_t depth, int pass);
  void column_nest(size_t depth, int pass);
  void column_tiles();
  void row_stores(bool columns);
  void open_axis(int axis);
  int64_t block_limit(int pass) const;
  std::vector<int> pass_roots(int pass) const;
  const std::vector<int>& reduces(int pass) const;
  bool flushes(int e) const;                    ///< long sums are taken block by block, so that float32 stays exact enough

  // -- anchors (emit_anchor.cpp, emit_convolution.cpp)
  void anchor();
  void matmul_loops();
  void convolution_loops();
  void follow();                                ///< regions that run after each batch element
  void finish_tile();                           ///< lambda: what follows the contraction, on one tile
  void tile_loop(const std::string& panels);    ///< over the rows of a block, for one panel of columns
  void scratch(const std::string& name, int64_t elements);
  void open_batch(const std::vector<int>& axes, bool parallel);
  bool gathers_lines() const { return s_.stream && !r_.anchor->strided_store(); }
  void stream_lines();                          ///< finished rows of a block, from their buffer to memory
  int64_t partial_columns() const;              ///< of the sums over some steps that wait for the others
  int64_t batch_count(const std::vector<int>& axes) const;

  // -- values (emit_values.cpp)
  const expr& at(int e) const { return r_.exprs[static_cast<size_t>(e)]; }
  int level(int e) const;
  void find_live();
  void named_values(int ready);                 ///< row- or column-level values known after that pass
  void element_values(const std::vector<int>& roots, bool second);
  std::string ref(int e);                       ///< how a use refers to a value here
  std::string operand(int e);                   ///< ref(), in brackets where it must be
  std::string build(int e);                     ///< the expression itself
  std::string call(const std::string& function, const expr& x);
  std::string constant(double value, dtype type, bool vector) const;
  std::string address(int buffer, const index_form& f, bool with_vector);
  std::string affine(const index_form& f, bool with_vector) const;
  std::string load(const expr& x, bool lanes);
  void store_value(const store& s, bool lanes);
  std::string var(int axis) const;
  std::string lane_type(dtype t) const;
  std::string vector_var() const { return columns_ ? "j" : "i"; }
  int64_t extent(int axis) const { return r_.axes[static_cast<size_t>(axis)].extent; }
  bool is_arg(int e) const { return at(e).op.rfind("arg", 0) == 0; }
  std::string position_type(int e) const;
  std::string identity(int e) const;
  std::string reduce_name(int e) const { return at(e).op + std::to_string(e); }
  bool in_tile() const { return in_tile_; }
  std::string row_index() const;

  void line(const std::string& s);
  void open(const std::string& s) { line(s); indent_ += 2; }
  void close(const std::string& s = "}") { indent_ -= 2; line(s); }

  const loop_program& p_;
  const region& r_;
  const region_schedule& s_;
  const schedule& all_;
  size_t number_;
  std::string followers_;
  std::ostringstream out_;
  int indent_ = 2;

  int vec_ = -1;
  bool columns_ = false;
  uint32_t element_mask_ = 0;
  std::vector<int> outer_, inner_;              ///< loop axes outside and inside of the passes, without the vector axis
  pass_plan plan_;
  std::vector<bool> live_, after_reduce_;
  std::vector<int> uses_;
  std::vector<std::string> names_;              ///< of values that have a variable
  std::vector<std::string> here_;               ///< of element values in the pass being emitted
  std::set<int> inverses_;                      ///< row values whose reciprocal has a variable
  bool in_tile_ = false;
  std::set<int> kept_;                          ///< element values in row buffers
  bool in_elements_ = false;
  int current_pass_ = 0, unroll_ = 1, current_moments_ = -1;
  size_t flush_depth_ = 0;
  bool blocked_ = false;
  bool second_ = false;                         ///< second half of a block: squared distances from the block's mean
};

/// Spreads over element values: which of them several passes need and are worth keeping.
std::set<int> values_worth_keeping(const region& r, const pass_plan& plan, uint32_t element_mask);

} // namespace pragma::synthesis
