// How the loops of a region stand around its vectors, and how long each of its values holds: what follows from the region and its
// schedule alone. Two shapes: rows (the vector axis lies inside the passes: reductions along the contiguous dimension, and
// everything pointwise) and columns (the vector axis lies outside: each lane is a row). Read by all writers.
#pragma once

#include "synthesis/schedule/passes.hpp"

namespace pragma::synthesis {

/// For how much of a region one value holds.
enum class lifetime {
  row,    ///< known before the vectors' loop, or between two passes over a row
  tile,   ///< columns only: one for each vector of a tile
  element ///< differs from step to step of a pass
};

struct region_layout {
  int vector_axis = -1;
  bool columns = false;
  uint32_t element_axes = 0;      ///< bits of the axes that passes run over
  std::vector<int> outer, inner;  ///< loop axes outside and inside of the passes, without the vector axis
  pass_plan plan;
  std::set<int> kept;             ///< element values in a buffer of one row, for the passes after
  std::vector<bool> live;         ///< some store needs it
  std::vector<bool> after_reduce; ///< some reduction is needed for it
  std::vector<int> uses;          ///< how often live values and stores take it

  lifetime of(const region& r, int e) const;
};

region_layout layout_of(const region& r, const region_schedule& s);

} // namespace pragma::synthesis
