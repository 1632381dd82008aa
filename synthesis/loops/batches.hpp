// What follows an anchor in regions of its own (pooling, softmax, norms of one image) runs right after the anchor, batch
// element by batch element: the scratch buffer between them shrinks to one element and stays in the caches.
#pragma once

#include "synthesis/loops/region.hpp"

namespace pragma::synthesis {

/// Moves regions into the batch loop of the anchor that they follow, where they touch one batch element at a time.
void join_batches(loop_program& program);

} // namespace pragma::synthesis
