// Small text helpers: suggestions for misspelt names, numbers with units for people, cutting logs to what helps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// The `count` names nearest to `word` by edit distance (case-insensitive; substrings count as near), best first.
std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& names, size_t count = 3);
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string trim(std::string_view text);
/// printf-like number: format_number(3.14159, 2) == "3.14".
std::string format_number(double value, int decimals);
/// "1.23 ms", "45.6 us", "12 ns".
std::string format_seconds(double seconds);
/// "64.0 MiB".
std::string format_bytes(double bytes);
/// Keeps the first `head` and last `tail` lines, with "... (N lines left out)" between them, and at most `max_bytes`.
std::string cut_lines(std::string_view text, size_t head, size_t tail, size_t max_bytes = 16384);
/// Any text from outside, safe for a terminal and (escaped) a page: valid UTF-8; controls (but \n and \t), turns of direction and what nobody sees are '?'.
std::string printable(std::string_view text);

} // namespace pragma
