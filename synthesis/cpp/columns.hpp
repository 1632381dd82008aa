// Columns: the vector axis lies outside of the passes, each lane is a row. A tile of vectors goes through all passes together.
#pragma once

#include "synthesis/cpp/values.hpp"

namespace pragma::synthesis {

/// One call of the lambda that computes a tile: `vectors` of them from `begin` on, again at every `step` before `end`.
struct column_tile {
  int64_t begin = 0, end = 0, step = 0; ///< step 0: once
  int vectors = 1;
  int64_t lanes = 0;                    ///< that are in range
  bool border = false;                  ///< some window reaches outside of the input
};
/// All columns, each once or (where whole vectors do not divide them) a few of them twice.
std::vector<column_tile> tiles_of_columns(const region& r, int vector_axis, int lanes, int widest);

/// Where long sums of columns are added up anew, so that float32 stays exact enough.
struct column_cut {
  bool blocked = false;
  bool cuts_loop = false; ///< the innermost loop is cut; else whole loops inside of `flush_depth` are short enough
  size_t flush_depth = 0;
};
column_cut cut_of_columns(const region& r, const region_layout& l, int pass);

class column_writer {
public:
  column_writer(const region& r, const region_schedule& s, const schedule& all, const region_layout& layout, value_writer& values, code& out)
      : r_(r), s_(s), all_(all), layout_(layout), values_(values), out_(out) {}
  void write();

private:
  const expr& at(int e) const { return r_.exprs[static_cast<size_t>(e)]; }
  std::vector<int> partial_sums() const; ///< reductions of this pass that are added up block by block
  void pass();
  void begin_scans();
  void block(size_t depth);
  void cut_loop(int axis);
  void begin_partial_sums();
  void add_partial_sums();
  void nest(size_t depth);
  void vector();
  void stores_of_rows();
  void tiles();

  const region& r_;
  const region_schedule& s_;
  const schedule& all_;
  const region_layout& layout_;
  value_writer& values_;
  code& out_;
  int pass_ = 0;
  column_cut cut_;
};

} // namespace pragma::synthesis
