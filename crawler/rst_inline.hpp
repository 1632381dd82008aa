// Inline markup of reStructuredText -> its text. Used by rst.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

/// Without emphasis, literals, roles, references and footnote marks. Where links lead to is added to `targets`: addresses as
/// they stand, and :doc: references as relative ones with `source_ending` (".rst").
std::string rst_plain_text(std::string_view text, std::string_view source_ending, std::vector<std::string>& targets);

/// ":c:func:`" -> 8, the length up to the backquote; 0 when no role begins here.
size_t rst_role_length(std::string_view text);

} // namespace pragma::crawler
