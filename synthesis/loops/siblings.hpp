// Regions that find the same sums of the same rows, for buffers of their own, become one: a loss that takes both the picked and the mean
// log-probability passes over its rows once. Used by build_program().
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Joins each region of rows to an earlier one that has the same axes and a reduction in common. What it stores is ready as early as that.
void join_siblings(loop_program& p);

} // namespace pragma::synthesis
