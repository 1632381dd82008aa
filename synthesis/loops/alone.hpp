// A region as a program of its own. Regions of a deep network repeat: those that are equal but for the tensors that they read and write are equal as programs of their
// own, and so are their texts. Both writers write such a text once, as a function of its tensors.
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

struct region_alone {
  loop_program program;     ///< the region, then those that run in its batch loop; buffers in the order in which they are met, named memory0, memory1, ...
  std::vector<int> buffers; ///< of the whole program, in that order: what the function is called with
};

/// `at`: a position in program.regions that is no follower's.
region_alone alone(const loop_program& program, size_t at);

} // namespace pragma::synthesis
