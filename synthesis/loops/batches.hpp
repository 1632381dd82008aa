// What follows an anchor in regions of its own (pooling, softmax, norms of one image) runs right after the anchor, batch
// element by batch element: the scratch buffer between them shrinks to one element and stays in the caches.
#pragma once

#include "synthesis/loops/region.hpp"

#include <set>

namespace pragma::synthesis {

/// Makes the batch an axis of its own in a region that reads `local` buffers; false where it touches several elements at once.
bool take_item_out(region& r, const std::set<int>& local, int64_t batch, const loop_program& p);
/// What a region loads, an anchor's operands among it.
std::set<int> buffers_read(const region& r);
/// Takes the item's terms out of all accesses to `local` buffers: they hold one element of the batch from now on.
void shrink_to_item(region& r, const std::set<int>& local, const std::vector<int>& item_axes);

/// Moves regions into the batch loop of the anchor that they follow, where they touch one batch element at a time.
void join_batches(loop_program& program);

} // namespace pragma::synthesis
