// The winner as its user gets it: written as a drop-in, tried in a fresh Torch process on unseen seeds, and timed as a Torch program calls it.
#pragma once

#include "actors/messages.hpp"

namespace pragma {

constexpr int most_called = 7; ///< for a figure that is wanted for itself: fresh_processes, more while others are busy or the processes disagree
/// Fills in what a confirmation says of the drop-in; its time becomes the headline. One that is wrong makes the verdict a refusal. `torch`: its
/// version, for people. An error: the machine's.
/// `compiled`: where a Triton module's process has compiled the same text (build_output::scratch): its processes use that. Empty: nowhere.
/// `most`: processes at most; one is enough for a figure on the way.
expected<void> call_drop_in(const task& t, const candidate& c, const load_request& request, const std::string& torch, const std::atomic<bool>* cancel, confirmation& result,
                            int most = most_called, const std::filesystem::path& compiled = {});

/// A drop-in of parts has no figure but the one as called, against Model as it is. unsupported, known before anything is tried: the request wants another, or none.
expected<void> can_time_parts(const load_request& request);

} // namespace pragma
