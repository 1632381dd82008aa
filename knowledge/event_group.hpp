// Which entries are one event to who asks: the same event of a processor in another tool's list, and one event at several
// thresholds, sizes or ports. Used by retriever::ask(), which makes one hit of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

struct event_group {
  std::string key;                  ///< equal for entries of one event; empty: this one stands alone
  std::vector<std::string> numbers; ///< folded pieces of the name that tell its members apart: {"4k"}
};

/// "ITLB_MISSES.WALK_COMPLETED_4K" -> "itlb misses walk completed" and {"4k"}. A name of the form EVENT.UMASK, as processors' makers
/// write them, means the same event in whichever tool; other names count within their own tool only.
event_group group_of(std::string_view name, std::string_view profiler);

} // namespace pragma
