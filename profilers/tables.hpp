// What profilers print, as a table of texts: CSV, JSON, JSON lines, or columns apart by blanks. The manifest's pass_output says which form
// it has; launches.cpp gives the columns their meaning. Nothing here starts a program: tested on recorded output.
#pragma once

#include "profilers/manifest.hpp"

namespace pragma {

struct data_table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows; ///< each as long as columns

  /// Its place, or columns.size() where there is none of that name (an empty name is none).
  size_t find(const std::string& name) const;
  bool has(const std::string& name) const { return find(name) < columns.size(); }
};

/// Lines before the table's header (banners, progress) are left out; the header is the first row that has the columns which the manifest
/// names. parse_error names `what` and the column or place. limit_exceeded: more
/// cells than any profiler prints; a table that would come to more is cut. A text without any row of cells is an empty table.
expected<data_table> read_table(std::string_view text, const pass_output& form, const std::string& what);

} // namespace pragma
