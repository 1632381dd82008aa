// Two products with rows between them (attention: scores, softmax, weighted values) run block by block of rows: what lies between is as
// large as one block and stays in the caches. Where a mask leaves out all beyond a diagonal, loops over the columns end there.
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Moves a product, and the regions of rows before it, into a loop over blocks of rows of the product that they follow.
void join_row_blocks(loop_program& program);

} // namespace pragma::synthesis
