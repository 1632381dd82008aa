// The winner as its user gets it: written as a drop-in, tried in a fresh Torch process on unseen seeds, and timed as a Torch program calls it.
#pragma once

#include "actors/messages.hpp"
#include "base/files.hpp"
#include "drop_in/drop_in.hpp"

#include <functional>

namespace pragma {

constexpr int most_called = 7; ///< for a figure that is wanted for itself: fresh_processes, more while others are busy or the processes disagree

/// A winner's files, and what the processes that call it are told.
struct written_winner {
  temp_dir place;
  drop_in_options options;
};
/// Compiled and tuned already, where each of its processes would do that again: kernels that are tuned, and those of parts. `compiled`: where a Triton module's process has compiled
/// the same text (build_output::scratch): its processes use that. Empty: nowhere.
expected<written_winner> write_winner(const task& t, const candidate& c, const load_request& request, const std::atomic<bool>* cancel, const std::filesystem::path& compiled = {});

/// The kernel alone, timed once more.
using kernel_timer = std::function<expected<timing>()>;

/// Can a call of a drop-in take so long, by what its kernel takes outside of that process? Seen after the same flush, about the kernel's time at least; else other caches explain a factor.
/// `flushed`: called_times::flushed.
bool possible(const timing& called, bool flushed, const timing& kernel);

/// Fills in what a confirmation says of the drop-in; its time becomes the headline. One that is wrong makes the verdict a refusal. `torch`: its version, for people. `most`: processes
/// at most; one is enough for a figure on the way. `kernel_again`: asked once, before a drop-in that is far quicker than `result.kernel` is not believed; the quicker of the two
/// stays there, and where that could not be timed, the first. Empty: `result.kernel` is final. An error: the machine's.
expected<void> call_drop_in(const written_winner& winner, const task& t, const load_request& request, const std::string& torch, confirmation& result, int most = most_called,
                            kernel_timer kernel_again = {});

/// A drop-in of parts has no figure but the one as called. unsupported, known before anything is tried: the request wants none.
expected<void> can_time_parts(const load_request& request);

} // namespace pragma
