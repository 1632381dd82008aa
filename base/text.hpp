// Small text helpers: suggestions for misspelt names, numbers with units for people, cutting logs to what helps.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// The `count` names nearest to `word` by edit distance (case-insensitive; substrings count as near), best first.
std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& names, size_t count = 3);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view text);
/// A to Z become a to z, whatever the locale; other bytes stay.
std::string ascii_lower(std::string_view text);
inline bool one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  for (const auto one : list)
    if (one == word) return true;
  return false;
}
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// printf-like number: format_number(3.14159, 2) == "3.14".
std::string format_number(double value, int decimals);
/// 0.42: "42%".
inline std::string whole_percent(double share) { return format_number(share * 100, 0) + "%"; }
/// "1.23 ms", "45.6 us", "12 ns".
std::string format_seconds(double seconds);
/// "64.0 MiB".
std::string format_bytes(double bytes);
/// Keeps the first `head` and last `tail` lines, with "... (N lines left out)" between them, and at most `max_bytes`.
std::string cut_lines(std::string_view text, size_t head, size_t tail, size_t max_bytes = 16384);
/// Any text from outside, safe for a terminal and (escaped) a page: valid UTF-8; controls (but \n and \t), turns of direction and what nobody sees are '?'.
std::string printable(std::string_view text);

} // namespace pragma
