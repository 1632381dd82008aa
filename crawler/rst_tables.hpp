// Tables of reStructuredText that are drawn with characters. Used by rst.cpp, which cleans the cells' inline markup.
#pragma once

#include "crawler/document.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

/// "+----+----+": the border that a grid table begins with.
bool is_grid_border(std::string_view line);
/// "====  =====": the border of a simple table (at least two columns).
bool is_simple_border(std::string_view line);

/// Reads the table that begins at lines[at], which is a border; `at` moves behind it.
table read_grid_table(const std::vector<std::string>& lines, size_t& at);
table read_simple_table(const std::vector<std::string>& lines, size_t& at);

} // namespace pragma::crawler
