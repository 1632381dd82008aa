// What comparisons of two candidates in several fresh processes say together, and when another one can change nothing.
#pragma once

#include "diagnosis/profile.hpp"

#include <vector>

namespace pragma {

inline constexpr size_t fresh_processes = 3;          ///< of a comparison of two candidates, at least; of a headline, and of a figure that is wanted for itself
inline constexpr size_t most_processes = 12;          ///< ... while the answer is open

/// What is asked of two candidates.
enum class comparison_goal {
  how_much,           ///< faster, slower or alike?
  is_first_faster,    ///< a search asks no more: that the other one is the faster is worth no further process
};

/// The median comparison, with an interval that holds the median of all such with 95%: of the values of six and more, since each is a process of its own; of fewer,
/// and of those that were taken under contention, from the bounds of each. Comparisons under contention are left out where `fresh_processes` others are there.
timing together(std::vector<timing> comparisons);

/// The same of calls from Python of a device. Processes that disagree there differ by how quick the host was: launches that hide behind other work in one show in the next, and most of
/// Torch's, which has more of them. Other work only ever adds time, so each side is as quick as in the quickest of its processes; the interval still holds what each of them said.
timing together_on_a_device(std::vector<timing> comparisons);

/// At least `fresh_processes` without others' work, the middle three of which say the same within 5%: a further one would hardly move the median.
bool agree(const std::vector<timing>& comparisons);

/// Another process would change nothing that is decided by a figure as called: they agree; or two and no other say that it is clearly slower, and nothing is given out then; or
/// (`asked`: is_first_faster) one and no other says that it is clearly faster.
bool enough_called(const std::vector<timing>& called, comparison_goal asked);

/// Notes of how many fresh processes a figure comes.
void note_processes(timing& t, size_t count);

/// The interval lies on one side of 1, or within 2% of it.
bool decided(const interval& i);

/// Not decided, and one of the answers to `asked` can still come with `most_processes`: as many lie on the other side as may be strays.
bool worth_another(const std::vector<timing>& comparisons, comparison_goal asked);

} // namespace pragma
