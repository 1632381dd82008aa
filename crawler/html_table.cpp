#include "crawler/html_table.hpp"

#include "crawler/charset.hpp"

#include <algorithm>
#include <charconv>

namespace pragma::crawler {

namespace {

constexpr size_t max_header_rows = 3;
constexpr size_t max_html_cell_bytes = 20'000;
constexpr size_t max_repeated_bytes = 300; ///< of a cell's text where its span repeats it: spans must not multiply long texts

int span_of(std::string_view text, int most) {
  int value = 1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp(value, 1, most);
}

} // namespace

void html_table::begin_row(std::string_view id) {
  rows_.push_back({{}, std::string(id), in_head_});
  row_open_ = true;
  cell_open_ = false;
}

void html_table::begin_cell(bool header, std::string_view colspan, std::string_view rowspan) {
  if (!row_open_) begin_row({});
  ++cells_;
  rows_.back().cells.push_back({{}, header, span_of(colspan, static_cast<int>(max_columns)), span_of(rowspan, max_span)});
  cell_open_ = true;
}

void html_table::add_text(std::string_view text, std::string_view id) {
  if (!cell_open_) return;
  auto& r = rows_.back();
  if (r.id.empty()) r.id = id;
  auto& into = r.cells.back().text;
  if (into.size() > max_html_cell_bytes) return;
  if (!into.empty()) into += '\n';
  into += utf8_prefix(text, max_html_cell_bytes);
}

std::vector<std::string> html_table::take_texts() {
  std::vector<std::string> texts;
  for (auto& r : rows_)
    for (auto& c : r.cells)
      if (!c.text.empty()) texts.push_back(std::move(c.text));
  rows_.clear();
  row_open_ = cell_open_ = false;
  return texts;
}

table html_table::finish() {
  struct carried {
    std::string text;
    int rows = 0;                    // still to come
  };
  std::vector<carried> above;
  std::vector<std::vector<std::string>> grid;
  std::vector<bool> head;            // per row: in <thead>
  std::vector<bool> all_headers;     // per row: only <th>
  table out;
  size_t total = 0;
  for (auto& r : rows_) {
    std::vector<std::string> line;
    auto take_carried = [&] {
      while (line.size() < above.size() && above[line.size()].rows > 0) {
        auto& c = above[line.size()];
        --c.rows;
        line.push_back(c.text);
      }
    };
    bool only_headers = !r.cells.empty();
    for (const auto& c : r.cells) {
      take_carried();
      only_headers &= c.header;
      for (int k = 0; k < c.columns && line.size() < max_columns; ++k) {
        // A header is that of each column below it; data stands where it begins.
        const auto repeated = k == 0 || c.header ? utf8_prefix(c.text, max_repeated_bytes) : std::string_view();
        if (c.rows > 1) {
          if (above.size() <= line.size()) above.resize(line.size() + 1);
          above[line.size()] = {std::string(repeated), c.rows - 1};
        }
        line.emplace_back(k == 0 ? std::string_view(c.text) : repeated);
      }
    }
    take_carried();
    total += line.size();
    if (total > max_cells) break;
    if (line.empty()) continue;
    grid.push_back(std::move(line));
    out.anchors.push_back(std::move(r.id));
    head.push_back(r.head);
    all_headers.push_back(only_headers);
  }
  size_t columns = 0, header_rows = 0;
  for (const auto& line : grid) columns = std::max(columns, line.size());
  for (auto& line : grid) line.resize(columns);
  const bool has_head = std::find(head.begin(), head.end(), true) != head.end();
  while (header_rows < grid.size() && header_rows < max_header_rows && (has_head ? head[header_rows] : all_headers[header_rows]))
    ++header_rows;
  if (header_rows == grid.size()) header_rows = grid.size() > 1 ? 1 : 0; // all of it is "header": only the first row is one
  for (size_t i = 0; i < header_rows; ++i) {
    const auto& line = grid[i];
    const bool title = columns > 1 && std::all_of(line.begin(), line.end(), [&](const auto& text) { return text == line.front(); });
    if (title && header_rows > 1) { // one cell over the whole width
      if (caption.empty()) caption = line.front();
      continue;
    }
    out.header.resize(columns);
    for (size_t k = 0; k < columns; ++k)
      if (out.header[k] != line[k] && !line[k].empty()) out.header[k] += (out.header[k].empty() ? "" : " ") + line[k];
  }
  out.anchors.erase(out.anchors.begin(), out.anchors.begin() + static_cast<long>(header_rows));
  grid.erase(grid.begin(), grid.begin() + static_cast<long>(header_rows));
  out.rows = std::move(grid);
  rows_.clear();
  return out;
}

} // namespace pragma::crawler
