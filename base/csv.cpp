#include "base/csv.hpp"

namespace pragma {

namespace {

constexpr size_t max_columns = 8192;  ///< cells of a row behind that are dropped; Nsight Compute prints some 2,200

} // namespace

expected<std::vector<csv_row>> read_csv(std::string_view text, char separator, std::string_view what) {
  std::vector<csv_row> rows;
  csv_row row;
  std::string cell;
  size_t line = 1, quote_line = 0;
  bool quoted = false, any = false;
  auto end_cell = [&] {
    if (row.cells.size() < max_columns) row.cells.push_back(std::move(cell));
    cell.clear();
  };
  auto end_row = [&] {
    if (any) {
      end_cell();
      rows.push_back(std::move(row));
    }
    row = {};
    cell.clear();
    any = false;
    row.line = line;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && cell.find_first_not_of(" \t") == std::string::npos) {
      cell.clear();
      quoted = any = true;
      quote_line = line;
    } else if (c == separator) {
      any = true;
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      any |= c != ' ' && c != '\t';
      cell += c;
    }
  }
  if (quoted)
    return fail(ec::parse_error, std::string(what) + ": the quote opened in line " + std::to_string(quote_line) +
                                     " is never closed (is the file complete?)");
  end_row();
  return rows;
}

} // namespace pragma
