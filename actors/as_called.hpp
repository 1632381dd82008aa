// The winner as its user gets it: written as a drop-in, tried in a fresh Torch process on unseen seeds, and timed as a Torch program calls it.
#pragma once

#include "actors/messages.hpp"

namespace pragma {

/// Fills in what a confirmation says of the drop-in; its time becomes the headline. One that is wrong makes the verdict a refusal. `torch`: its
/// version, for people. An error: the machine's.
expected<void> call_drop_in(const task& t, const candidate& c, const load_request& request, const std::string& torch, const std::atomic<bool>* cancel, confirmation& result);

} // namespace pragma
