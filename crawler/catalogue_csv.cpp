// Lists of metrics as CSV (`ncu --csv --query-metrics`, rocprofv3's counter lists, any table whose header names its columns), and as
// blocks of "Name: value" lines, which rocprofv3 -L prints.
#include "crawler/charset.hpp"
#include "crawler/definitions.hpp"
#include "crawler/metric_names.hpp"
#include "crawler/parsers.hpp"

#include "base/csv.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace pragma::crawler {

namespace {

constexpr size_t header_within = 50;      ///< rows in which the header is looked for; tools print banners first
constexpr size_t sniff_bytes = 8192;

/// Tools mix their progress into the output: "==PROF== Connected to process", "Device NVIDIA H100 (GH100)", log lines.
std::string without_noise(std::string_view text, size_t& dropped) {
  std::string out;
  out.reserve(text.size());
  for (size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\n', start), text.size());
    auto line = text.substr(start, end - start);
    start = end + 1;
    // A list has metrics commented out that are not exported by default; they are documented all the same.
    if (line.starts_with("#")) {
      const auto rest = line.substr(std::min(line.find_first_not_of("# "), line.size()));
      const auto cell = rest.substr(0, rest.find(','));
      if (cell.size() < rest.size() && looks_like_metric(trim(cell))) line = rest;
    }
    const bool noise = line.starts_with("==PROF==") || line.starts_with("==ERROR==") || line.starts_with("==WARNING==") ||
                       line.starts_with("#") || (line.starts_with("Device ") && line.find(',') == std::string_view::npos);
    if (noise) ++dropped;
    else out.append(line) += '\n';
  }
  return out;
}

char separator_of(std::string_view text) {
  const auto head = text.substr(0, sniff_bytes);
  char best = ',';
  long most = 0;
  for (const char c : {',', ';', '\t'})
    if (const auto count = std::count(head.begin(), head.end(), c); count > most) {
      most = count;
      best = c;
    }
  return best;
}

/// "Counter_Name" and "Metric Name" are told apart from other columns by their words.
std::string words_of_header(std::string_view cell) {
  auto out = one_line(cell);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

int name_column(const csv_row& row) {
  int weak = -1;
  for (const auto& cell : row.cells)
    if (looks_like_metric(trim(cell))) return -1; // a row of data, whose type may be "counter"
  for (const auto& cell : row.cells)
    if (trim(cell).ends_with(':')) return -1; // "Name: value" lines, which are read as blocks
  for (size_t k = 0; k < row.cells.size(); ++k) {
    const auto what = column_of(words_of_header(row.cells[k]));
    if (what == column::metric) return static_cast<int>(k);
    if (what == column::name && weak < 0) weak = static_cast<int>(k);
  }
  return weak;
}

void take_rows(const std::vector<csv_row>& rows, size_t header, document& d) {
  const auto& columns = rows[header].cells;
  const auto name = static_cast<size_t>(name_column(rows[header]));
  for (size_t i = header + 1; i < rows.size(); ++i) {
    const auto& cells = rows[i].cells;
    if (cells.size() <= name || cells == columns) continue;
    metric_record r;
    r.name = cells[name];
    for (size_t k = 0; k < cells.size() && k < columns.size(); ++k) {
      if (k == name || trim(cells[k]).empty()) continue;
      const auto what = column_of(words_of_header(columns[k]));
      if (what == column::description && r.description.empty()) r.description = cells[k];
      else if (what == column::unit && r.unit.empty()) r.unit = cells[k];
      else r.fields.emplace(one_line(columns[k]).empty() ? "column " + std::to_string(k + 1) : one_line(columns[k]), cells[k]);
    }
    add_record(d, std::move(r));
  }
}

/// A list without a header ("DCGM_FI_DEV_SM_CLOCK, gauge, SM clock frequency (in MHz)."): the column of names is told by its shape.
void take_headless(const std::vector<csv_row>& rows, document& d) {
  table t;
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const auto& cell : row.cells) cells.push_back(trim(cell));
    if (cells.size() >= 2) t.rows.push_back(std::move(cells));
  }
  table_reader reader(t, false);
  if (!reader.defines()) return;
  for (size_t i = 0; i < t.rows.size(); ++i)
    for (auto& r : reader.row(i).records) add_record(d, std::move(r));
}

/// Blocks of "Key: value" lines; a "Name" begins the next record, and a line without a key goes on with the value before.
void take_blocks(std::string_view text, document& d) {
  metric_record r;
  std::string* last = nullptr;
  auto close = [&] {
    if (!r.name.empty() && (!r.description.empty() || !r.fields.empty())) add_record(d, std::move(r));
    r = {};
    last = nullptr;
  };
  for (const auto& raw : split(text, '\n')) {
    const auto line = trim(raw);
    if (line.empty()) continue;
    const auto colon = line.find(':');
    const auto head = colon == std::string::npos ? std::string() : ascii_lower(trim(std::string_view(line).substr(0, colon)));
    const bool is_key = !head.empty() && head.size() <= 24 &&
                        head.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_- ") == std::string::npos;
    if (!is_key) {
      if (last) *last += " " + line;
      continue;
    }
    const auto value = trim(std::string_view(line).substr(colon + 1));
    const auto what = column_of(words_of_header(head));
    if (what == column::name || what == column::metric) {
      close();
      r.name = value;
      last = nullptr;
    } else if (!r.name.empty()) {
      auto& into = what == column::description ? r.description : what == column::unit ? r.unit : r.fields[head];
      into = value;
      last = &into;
    }
  }
  close();
}

} // namespace

expected<document> parse_csv_catalogue(std::string_view utf8, std::string_view url) {
  if (utf8.size() > limits::source_bytes)
    return fail(ec::limit_exceeded,
                std::string(url) + ": " + format_bytes(static_cast<double>(utf8.size())) + " of CSV is too much",
                "split the list");
  document d;
  d.base = url;
  size_t noise = 0;
  const auto text = without_noise(utf8, noise);
  auto rows = read_csv(text, separator_of(text), url);
  size_t header = 0;
  if (rows) {
    const auto last = std::min(rows->size(), header_within);
    while (header < last && ((*rows)[header].cells.size() < 2 || name_column((*rows)[header]) < 0)) ++header;
    if (header < last) take_rows(*rows, header, d);
  }
  if (d.records.empty()) take_blocks(text, d);
  if (d.records.empty() && rows) take_headless(*rows, d);
  if (d.records.empty()) {
    if (!rows) return fail(rows.error());
    return no_records(url, "CSV",
                      rows->empty()
                          ? "it is empty"
                          : "its first row is '" + std::string(utf8_prefix(one_line(join((*rows)[0].cells, ", ")), 120)) + "'");
  }
  if (noise > 0) d.notes.push_back(std::to_string(noise) + " line(s) that are not part of the table left out");
  return d;
}

} // namespace pragma::crawler
