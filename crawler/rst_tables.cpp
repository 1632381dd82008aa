#include "crawler/rst_tables.hpp"

#include "base/text.hpp"
#include "crawler/parsers.hpp"

#include <algorithm>
#include <set>

namespace pragma::crawler {

namespace {

void add_line(std::string& cell, std::string_view text) {
  const auto line = trim(text);
  if (line.empty()) return;
  if (!cell.empty()) cell += '\n';
  cell += line;
}

std::string_view slice(const std::string& line, size_t from, size_t to) {
  from = std::min(from, line.size());
  return std::string_view(line).substr(from, to > from ? to - from : 0);
}

/// Header rows become one: the texts of a column, joined.
void set_header(table& t, std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    t.header.resize(std::max(t.header.size(), row.size()));
    for (size_t k = 0; k < row.size(); ++k)
      if (!row[k].empty()) t.header[k] += (t.header[k].empty() ? "" : " ") + row[k];
  }
}

} // namespace

bool is_grid_border(std::string_view line) {
  return line.size() >= 3 && line.front() == '+' && line.back() == '+' &&
         line.find_first_not_of("+-=") == std::string_view::npos && line[1] != '+';
}

bool is_simple_border(std::string_view line) {
  return line.size() >= 5 && line.front() == '=' && line.back() == '=' && line.find_first_not_of("= ") == std::string_view::npos &&
         line.find(' ') != std::string_view::npos;
}

table read_grid_table(const std::vector<std::string>& lines, size_t& at) {
  const size_t first = at;
  std::set<size_t> edges; // positions of column borders, from every line that has one
  for (; at < lines.size() && !lines[at].empty() && (lines[at][0] == '+' || lines[at][0] == '|'); ++at)
    if (lines[at][0] == '+')
      for (size_t i = 0; i < lines[at].size() && edges.size() <= limits::table_columns; ++i)
        if (lines[at][i] == '+') edges.insert(i);
  const std::vector<size_t> borders(edges.begin(), edges.end());
  table t;
  if (borders.size() < 2) return t;
  const size_t columns = borders.size() - 1;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(columns);
  auto end_row = [&] {
    if (std::any_of(row.begin(), row.end(), [](const auto& cell) { return !cell.empty(); })) rows.push_back(row);
    row.assign(columns, {});
  };
  for (size_t i = first; i < at; ++i) {
    const auto& line = lines[i];
    if (is_grid_border(line)) {
      end_row();
      if (line.find('=') != std::string::npos && t.header.empty()) {
        set_header(t, std::move(rows));
        rows.clear();
      }
      continue;
    }
    // A border that does not reach over all columns: cells beside it go on in the next row.
    const bool partial = line.find("+-") != std::string::npos && line.find("-+") != std::string::npos;
    std::vector<std::string> kept(columns);
    if (partial) {
      for (size_t k = 0; k < columns; ++k)
        if (slice(line, borders[k] + 1, borders[k + 1]).find_first_not_of('-') != std::string_view::npos) kept[k] = row[k];
      end_row();
      row = kept;
      continue;
    }
    for (size_t k = 0; k < columns;) {
      // A cell over several columns has no bar where their border is.
      size_t last = k;
      while (last + 1 < columns && borders[last + 1] < line.size() && line[borders[last + 1]] != '|') ++last;
      add_line(row[k], slice(line, borders[k] + 1, borders[last + 1]));
      k = last + 1;
    }
  }
  end_row();
  t.rows = std::move(rows);
  return t;
}

table read_simple_table(const std::vector<std::string>& lines, size_t& at) {
  std::vector<size_t> starts;
  const auto& border = lines[at];
  for (size_t i = 0; i < border.size() && starts.size() < limits::table_columns; ++i)
    if (border[i] == '=' && (i == 0 || border[i - 1] == ' ')) starts.push_back(i);
  table t;
  std::vector<std::vector<std::string>> rows;
  int borders = 1;
  for (++at; at < lines.size(); ++at) {
    const auto& line = lines[at];
    if (is_simple_border(line)) {
      ++borders;
      const bool last = at + 1 >= lines.size() || lines[at + 1].empty() || borders == 3;
      if (last) {
        ++at;
        break;
      }
      if (t.header.empty()) {
        set_header(t, std::move(rows));
        rows.clear();
      }
      continue;
    }
    if (line.find_first_not_of("- ") == std::string::npos) continue; // empty, or the underline of a cell over several columns
    std::vector<std::string> row;
    for (size_t k = 0; k < starts.size(); ++k)
      row.push_back(trim(slice(line, starts[k], k + 1 < starts.size() ? starts[k + 1] : line.size())));
    if (row[0].empty() && !rows.empty()) {
      for (size_t k = 1; k < row.size(); ++k) add_line(rows.back()[k], row[k]);
    } else {
      rows.push_back(std::move(row));
    }
  }
  t.rows = std::move(rows);
  return t;
}

} // namespace pragma::crawler
