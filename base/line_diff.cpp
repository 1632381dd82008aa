#include "base/line_diff.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>

namespace pragma {

namespace {

constexpr size_t max_cells = 4u << 20; // of the table of common subsequences: 16 MiB and some 20 ms for a moment

using text_lines = std::vector<std::string>;

text_lines lines_of(std::string_view text) {
  auto out = split(text, '\n');
  if (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

/// The changed middle, without the lines that begin and end both versions.
void diff_middle(const text_lines& a, size_t a0, size_t a1, const text_lines& b, size_t b0, size_t b1, std::vector<diff_line>& out) {
  const size_t n = a1 - a0, m = b1 - b0;
  if (n > 0 && m > 0 && (n + 1) * (m + 1) <= max_cells) {
    std::vector<uint32_t> common((n + 1) * (m + 1), 0); // of the suffixes from (i, j)
    auto at = [&](size_t i, size_t j) -> uint32_t& { return common[i * (m + 1) + j]; };
    for (size_t i = n; i-- > 0;)
      for (size_t j = m; j-- > 0;)
        at(i, j) = a[a0 + i] == b[b0 + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    size_t i = 0, j = 0;
    while (i < n && j < m) {
      if (a[a0 + i] == b[b0 + j]) {
        out.push_back({diff_line::kind::same, a[a0 + i]});
        ++i, ++j;
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        out.push_back({diff_line::kind::removed, a[a0 + i++]});
      } else {
        out.push_back({diff_line::kind::added, b[b0 + j++]});
      }
    }
    a0 += i, b0 += j;
  }
  for (; a0 < a1; ++a0) out.push_back({diff_line::kind::removed, a[a0]});
  for (; b0 < b1; ++b0) out.push_back({diff_line::kind::added, b[b0]});
}

} // namespace

std::vector<diff_line> line_diff(std::string_view before, std::string_view after, size_t context) {
  const auto a = lines_of(before), b = lines_of(after);
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<diff_line> all;
  for (size_t i = 0; i < head; ++i) all.push_back({diff_line::kind::same, a[i]});
  diff_middle(a, head, a.size() - tail, b, head, b.size() - tail, all);
  for (size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({diff_line::kind::same, a[i]});

  std::vector<bool> keep(all.size(), false);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].what == diff_line::kind::same) continue;
    for (size_t k = i < context ? 0 : i - context; k < std::min(all.size(), i + context + 1); ++k) keep[k] = true;
  }
  std::vector<diff_line> out;
  for (size_t i = 0; i < all.size();) {
    if (keep[i]) {
      out.push_back(std::move(all[i++]));
      continue;
    }
    const size_t start = i;
    while (i < all.size() && !keep[i]) ++i;
    if (i - start < all.size()) out.push_back({diff_line::kind::gap, std::to_string(i - start) + " unchanged lines"});
  }
  return out;
}

} // namespace pragma
