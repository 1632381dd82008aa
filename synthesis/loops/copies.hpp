// Regions that only copy a whole buffer, as views between a contraction and its neighbours leave them behind: on a device they
// cost two more trips to memory. Used by build_program().
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Readers of a copy read the original; what is copied to an output is written there in the first place.
void drop_copies(loop_program& program);

} // namespace pragma::synthesis
