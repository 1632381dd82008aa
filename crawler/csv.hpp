// Comma-separated values (RFC 4180). Used by catalogue_csv.cpp and, for csv-table, by rst.cpp.
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

struct csv_row {
  std::vector<std::string> cells;
  size_t line = 1;               ///< where it starts, from 1
};

/// A quoted cell may hold separators, line breaks and doubled quotes; empty lines are left out. parse_error (with the line) where a
/// quote is never closed.
expected<std::vector<csv_row>> read_csv(std::string_view text, char separator, std::string_view what);

} // namespace pragma::crawler
