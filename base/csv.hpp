// Comma-separated values (RFC 4180). Used for what profilers print, for lists of metrics, and for csv-table in reStructuredText.
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

struct csv_row {
  std::vector<std::string> cells;
  size_t line = 1;               ///< where it starts, from 1
};

/// A quoted cell may hold separators, line breaks and doubled quotes; empty lines are left out. parse_error (with the line) where a
/// quote is never closed.
expected<std::vector<csv_row>> read_csv(std::string_view text, char separator, std::string_view what);

} // namespace pragma
