#include "profilers/tables.hpp"

#include "base/csv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <set>

namespace pragma {

namespace {

// Who wrote the text may mean harm, and short texts can make large tables: rows are as long as the header, and each cell is a string.
constexpr size_t max_rows = 100'000;     ///< a table that is longer is cut: no call launches so many kernels
constexpr size_t max_columns = 8192;     ///< as in base/csv.cpp
constexpr size_t max_cells = 2'000'000;  ///< of a table; what is printed with more of them is refused, and a table that comes to more is cut

/// Rows that a table with so many columns may have.
size_t rows_for(size_t columns) { return std::min(max_rows, max_cells / std::max<size_t>(1, columns)); }

std::vector<std::string> key_columns(const output_columns& c) {
  std::vector<std::string> keys;
  for (const auto* name : {&c.launch, &c.kernel, &c.metric, &c.value, &c.start, &c.end, &c.rule})
    if (!name->empty()) keys.push_back(*name);
  return keys;
}

bool is_noise(std::string_view line, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](const auto& b) { return line.starts_with(b); });
}

std::string without_noise(std::string_view text, const std::vector<std::string>& beginnings) {
  std::string kept;
  kept.reserve(text.size());
  for (size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    const auto line = text.substr(start, end - start);
    start = end + 1;
    if (!is_noise(line, beginnings)) kept.append(line) += '\n';
  }
  return kept;
}

/// "a   b  c" or "| a | b |" -> cells; a line of rules ("----", "====") has none.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (line.find_first_not_of(" \t-=+|\r") == std::string::npos) return cells;
  if (line.find('|') != std::string::npos) {
    for (auto& cell : split(line, '|')) cells.push_back(trim(cell));
    if (!cells.empty() && cells.front().empty()) cells.erase(cells.begin());
    if (!cells.empty() && cells.back().empty()) cells.pop_back();
    return cells;
  }
  const auto text = trim(line);
  for (size_t start = 0; start < text.size();) {
    const auto end = std::min({text.find("  ", start), text.find('\t', start), text.size()});
    cells.push_back(trim(text.substr(start, end - start)));
    start = std::min(text.find_first_not_of(" \t", end), text.size());
  }
  return cells;
}

std::vector<std::vector<std::string>> rows_of_lines(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : split(text, '\n'))
    if (auto cells = cells_of(line); !cells.empty()) rows.push_back(std::move(cells));
  return rows;
}

/// The first row that names all wanted columns becomes the header.
expected<data_table> with_header(std::vector<std::vector<std::string>> rows, const pass_output& form, const std::string& what) {
  data_table table;
  const auto keys = key_columns(form.columns);
  std::string absent;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> names;
    for (const auto& cell : rows[i]) names.push_back(trim(cell));
    const auto missing = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return std::find(names.begin(), names.end(), k) == names.end(); });
    if (missing != keys.end()) {
      if (absent.empty()) absent = *missing;
      continue;
    }
    table.columns = std::move(names);
    const auto most = rows_for(table.columns.size());
    for (size_t k = i + 1; k < rows.size() && table.rows.size() < most; ++k) {
      rows[k].resize(table.columns.size());
      table.rows.push_back(std::move(rows[k]));
    }
    return table;
  }
  if (rows.empty()) return table;
  return fail(ec::parse_error, what + " has no column '" + absent + "'", "its first row: " + printable(join(rows.front(), " | ").substr(0, 200)));
}

/// Lists and objects are no cell: to print what is nested deeply takes as many calls as it has levels.
std::string cell_of(const json& value) {
  if (value.is_null() || value.is_structured()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Objects as rows; the columns are all keys, in the order in which they come.
data_table table_of_objects(const std::vector<json>& objects) {
  data_table table;
  std::set<std::string> seen;
  for (const auto& object : objects)
    for (const auto& [key, value] : object.items())
      if (table.columns.size() < max_columns && seen.insert(key).second) table.columns.push_back(key);
  const auto most = rows_for(table.columns.size());
  for (const auto& object : objects) {
    if (table.rows.size() == most) break;
    std::vector<std::string> row;
    for (const auto& key : table.columns) row.push_back(object.contains(key) ? cell_of(object[key]) : std::string());
    table.rows.push_back(std::move(row));
  }
  return table;
}

expected<data_table> read_json(std::string_view text, const pass_output& form, const std::string& what) {
  auto document = parse_json(text, what);
  if (!document) return fail(document.error());
  try {
    const json::json_pointer at(form.rows);
    if (!document->contains(at)) return fail(ec::parse_error, what + " has nothing at " + form.rows);
    auto& list = (*document)[at];
    std::vector<json> objects;
    if (!list.is_array()) return fail(ec::parse_error, what + ": what stands at '" + form.rows + "' is no list");
    for (auto& object : list)
      if (object.is_object()) objects.push_back(std::move(object)); // a copy would call itself for each level
    return table_of_objects(objects);
  } catch (const json::exception& e) {
    return fail(ec::parse_error, what + ": " + e.what());
  }
}

} // namespace

size_t data_table::find(const std::string& name) const {
  if (name.empty()) return columns.size();
  return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
}

expected<data_table> read_table(std::string_view text, const pass_output& form, const std::string& what) {
  if (form.format == "json") return read_json(text, form, what);
  const auto kept = without_noise(text, form.noise);
  if (form.format == "jsonl") {
    std::vector<json> objects;
    for (const auto& line : split(kept, '\n'))
      if (auto object = parse_if_json(line); object.is_object()) objects.push_back(std::move(object));
    return table_of_objects(objects);
  }
  const std::string ends = form.format == "table" ? "|\t\n" : form.separator + "\n";
  if (static_cast<size_t>(std::count_if(kept.begin(), kept.end(), [&](char c) { return ends.find(c) != std::string::npos; })) > max_cells)
    return fail(ec::limit_exceeded, what + " has more than " + std::to_string(max_cells) + " cells");
  if (form.format == "table") return with_header(rows_of_lines(kept), form, what);
  auto parsed = read_csv(kept, form.separator.front(), what);
  if (!parsed) return fail(parsed.error());
  std::vector<std::vector<std::string>> rows;
  for (auto& row : *parsed) rows.push_back(std::move(row.cells));
  return with_header(std::move(rows), form, what);
}

} // namespace pragma
