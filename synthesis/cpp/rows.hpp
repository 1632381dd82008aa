// Rows: the vector axis lies inside the passes. Reductions along the contiguous dimension, scans, and everything pointwise.
#pragma once

#include "synthesis/cpp/values.hpp"

namespace pragma::synthesis {

/// How a pass over a row is cut: elements that float32 accumulators add before their total goes to float64.
struct row_cut {
  bool blocked = false;   ///< the vector axis itself is cut into blocks
  int64_t block = 0;      ///< elements of one
  size_t flush_depth = 0; ///< inner loops outside of the accumulators
  int unroll = 1;         ///< vectors a step, each with accumulators of its own
};
row_cut cut_of_row(const region& r, const region_layout& l, int pass, int lanes, int unroll);

/// Sums and products are taken block by block, so that float32 stays exact enough; the others in one go.
inline bool adds_up(operation op) { return traits(op).family == operator_family::reduction && traits(op).cpp.as == spelling::form::infix; }
/// Reductions of a pass.
const std::vector<int>& reductions_of(const pass_plan& plan, int pass);
/// What a pass has to compute for each element: arguments of its reductions, and values that it stores.
std::vector<int> roots_of(const region& r, const region_layout& l, int pass);

class row_writer {
public:
  row_writer(const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, value_writer& values, code& out)
      : r_(r), s_(s), all_(all), layout_(layout), values_(values), out_(out) {}
  /// Inside of the loops over layout.outer, of which it opens the innermost one itself.
  void write();

private:
  const expr& at(int e) const { return r_.exprs[static_cast<size_t>(e)]; }
  const std::vector<int>& reductions() const { return reductions_of(layout_.plan, pass_); }
  const merged_moments* moments(int e) const;
  void pass();
  void rows_at_once(); ///< region_schedule::together of them
  void followed(); ///< passes 1 and 2 as one, with a level that follows the peak (followed_peak)
  void followed_block(const std::string& end); ///< up to there
  void begin_totals();
  void begin_scans();
  void finish_totals();
  void loops(size_t depth);
  void block(size_t depth);                              ///< everything between two flushes
  void flush(int e);
  void nest(size_t depth, int distances_of);             ///< -1, or the sum whose squared distances are wanted
  /// Vectors end at a bound that the loop around them has found (row_blocks.hpp).
  bool bounded() const { return r_.bounded_axis >= 0 && r_.bounded_axis == layout_.vector_axis; }
  void vectors(int distances_of);
  void step(int distances_of);                           ///< one vector, as a lambda
  std::string call(int distances_of, const std::string& position, const std::string& lanes, const std::string& part) const;
  void prefetches();

  const region& r_;
  const region_schedule& s_;
  const schedule& all_;
  const region_layout& layout_;
  value_writer& values_;
  code& out_;
  int pass_ = 0, rows_ = 1; ///< rows that are read at once
  row_cut cut_;
};

} // namespace pragma::synthesis
