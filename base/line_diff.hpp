// Line diff of two versions of a kernel, for the report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

struct diff_line {
  enum class kind { same, added, removed, gap } what = kind::same; ///< gap: unchanged lines left out; text says how many
  std::string text;
};

/// Least changes by longest common subsequence, `context` unchanged lines around each. Versions that have little in
/// common and are too long for that are shown as one removed and one added block.
std::vector<diff_line> line_diff(std::string_view before, std::string_view after, size_t context = 3);

} // namespace pragma
