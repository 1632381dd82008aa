// Regions that only copy a whole buffer, or widen it, as views between a contraction and its neighbours leave them behind: on a device they
// cost two more trips to memory. Used by build_program().
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Products of bytes that were made float32 in a region of their own read the bytes: packing widens them. For processors.
void widen_while_packing(loop_program& program);

/// Readers of a copy read the original; what is copied to an output is written there in the first place.
void drop_copies(loop_program& program);

} // namespace pragma::synthesis
