// One <table> while it is read: rows of cells with spans in, a rectangular table with a header out. Used by html.cpp.
#pragma once

#include "crawler/document.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma::crawler {

class html_table {
public:
  std::string anchor, caption;
  bool layout = false;               ///< it holds headings or tables: columns of a page, not data

  void begin_section(bool head) { in_head_ = head; }
  void begin_row(std::string_view id);
  void begin_cell(bool header, std::string_view colspan, std::string_view rowspan);
  /// A paragraph of the open cell; its anchor becomes the row's if that has none.
  void add_text(std::string_view text, std::string_view id);
  void end_cell() { cell_open_ = false; }
  void end_row() { row_open_ = cell_open_ = false; }
  bool cell_open() const { return cell_open_; }
  bool full() const { return cells_ >= max_cells; }

  /// The texts of all cells in order, for a table that turned out to be layout; it is empty afterwards.
  std::vector<std::string> take_texts();
  /// Spans resolved: a cell over several rows is repeated in each, a header over several columns too.
  table finish();

private:
  static constexpr size_t max_cells = 200'000, max_columns = 128;
  static constexpr int max_span = 1000;
  struct cell {
    std::string text;
    bool header = false;
    int columns = 1, rows = 1;
  };
  struct row {
    std::vector<cell> cells;
    std::string id;
    bool head = false;
  };
  std::vector<row> rows_;
  bool in_head_ = false, row_open_ = false, cell_open_ = false;
  size_t cells_ = 0;
};

} // namespace pragma::crawler
