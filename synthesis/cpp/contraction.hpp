// Contractions: blocks for the caches, packed panels, a register tile, and what follows on each tile. The order of loops is
// Goto's; every operand layout differs in its packing only. What products and convolutions share; matmul.cpp and convolution.cpp
// have the rest.
#pragma once

#include "synthesis/cpp/values.hpp"

#include <functional>

namespace pragma::synthesis {

/// How a contraction is blocked, and which loops are shared out over threads.
struct contraction_plan {
  contraction_size size;
  int64_t tile_columns = 0;          ///< of the register tile
  int64_t all_rows = 0;              ///< m, rounded up to whole tiles
  int64_t block_steps = 0;           ///< of k; of a convolution: channels
  int64_t block_columns = 0;         ///< of the sums over some steps that wait for the others
  bool several_k = false, several_m = false, several_n = false;
  bool far_sums = false;             ///< sums that wait are more than a cache near the core holds: they are asked for
  bool strided = false;              ///< a transposed convolution with strides: results of several residues side by side
  bool gathers_lines = false;        ///< rows of results are collected and streamed
  std::vector<int> outside, inside;  ///< batch loops: those that a depends on lie outside, so that it is packed once
  bool shared = false;         ///< by several threads
  dtype words = dtype::float32;      ///< bfloat16 or int8: a product by words of 32 bits (words.cpp); else none
  bool parallel_outside = false, parallel_inside = false;
  bool shares_columns = false; ///< threads share out blocks of columns: there are too few batch elements for them
  bool shares_batch = false, shares_blocks = false; ///< of blocks of rows: threads share out the batch without them, or with them
};
contraction_plan plan_contraction(const loop_program& program, const region& r, const region_schedule& s, const schedule& all);

class contraction_writer {
public:
  contraction_writer(const loop_program& program, const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, value_writer& values, code& out)
      : r_(r), c_(*r.anchor), s_(s), all_(all), layout_(layout), values_(values), out_(out), plan_(plan_contraction(program, r, s, all)) {}
  virtual ~contraction_writer() = default;
  /// `followers`: what runs after each batch element.
  void write(const code& followers);

protected:
  virtual void loops(const code& followers) = 0;
  void scratch(const std::string& name, int64_t elements);
  /// For all threads: filled before they part.
  void shared_scratch(const std::string& name, int64_t elements);
  void open_batch(const std::vector<int>& axes, bool parallel);
  void close_batch(const std::vector<int>& axes);
  /// A loop over blocks of an index, or constants where one block holds all: n0, n1; m0, m1.
  void open_columns();
  void open_rows();
  void close_rows() { if (plan_.several_m) out_.close(); }
  /// A lambda: what follows the contraction, row by row of a tile. `sum` is the contraction's vector.
  void finish_tile();
  /// Over the rows of a block, for one panel of columns; `panels`: address of the first panel of a of this block.
  void tile_loop(const std::string& panels) { tile_loop([&](const std::string& guard) { out_.line("{}{}(depth, {}, b, tile);", guard, out_.use(of_pairs() ? "multiply_pairs" : "multiply_tile"), panels); }); }
  /// The same, with lines that fill `tile` from the rows at m; each begins with the text that it is handed.
  void tile_loop(const std::function<void(const std::string& guard)>& multiply);
  /// Opens the loop over the tiles of rows of a block. The text is true where a tile has to be computed; empty: all have.
  std::string open_tiles();
  void stream_lines();                    ///< finished rows of a block, from their buffer to memory
  /// The text that is true in the last block of steps.
  std::string last_steps() const { return std::string("k0 + ") + (c_.op == operation::convolution ? "channels" : "depth") + " >= steps"; }
  /// What a vector of sums is.
  const char* sums() const { return plan_.words == dtype::int8 ? "vi" : "vf"; }
  /// Both factors are bfloat16 in memory: their products have helpers of their own.
  bool of_pairs() const { return c_.op == operation::matmul && values_.format(c_.a) == dtype::bfloat16 && values_.format(c_.b) == dtype::bfloat16; }
  /// The access without its part along these axes.
  index_form without(index_form f, const std::vector<int>& axes) const;
  std::string rows_begin() const { return plan_.several_m ? "m0" : "0"; }
  std::string rows_end() const { return plan_.several_m ? "m1" : std::to_string(plan_.size.m); }

  const region& r_;
  const contraction& c_;
  const region_schedule& s_;
  const schedule& all_;
  const region_layout& layout_;
  value_writer& values_;
  code& out_;
  const contraction_plan plan_;

private:
  void finish_strided(const std::vector<int>& roots);
  void finish_columns(const std::vector<int>& roots);
  void finish_unmasked(bool ragged);
};

class matmul_writer : public contraction_writer {
public:
  using contraction_writer::contraction_writer;

protected:
  void loops(const code& followers) override;

private:
  void allocate();
  void by_words(const code& followers);
  void allocate_words();
  void pack_words_of_rows();
  void pack_words_of_columns();
  void multiply_words();
  void by_row_blocks(const code& followers);
  void multiply_rows();
  void open_row_blocks();
  void place_in_row_blocks();
  void pack_all_rows();
  void pack_rows(const std::string& to, const std::string& depth, const std::string& from_k);
  void open_steps();
  void pack_columns();
  std::string base(int buffer, const index_form& f) const;
  bool whole() const { return s_.block.whole || plan_.several_n; }
  /// How many panels are packed at once: several where a step of all of them lies side by side.
  int panels_at_once() const { return c_.b_at.coefficient(c_.n[0]) == 1 && !of_pairs() && s_.block.n > plan_.tile_columns ? 4 : 1; }
  std::string panel_of_block() const { return fmt::format("a_panels + {} * depth", plan_.several_m ? "(m - m0)" : "m"); }
};

} // namespace pragma::synthesis
