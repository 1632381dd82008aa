// PDF: pdftotext in a limited child gives text with the page's columns kept apart by spaces; here it becomes headings, paragraphs and
// tables again, by their shape on the page. Anchors are "page=N", which browsers understand.
#include "crawler/charset.hpp"
#include "crawler/child.hpp"
#include "crawler/document_builder.hpp"
#include "crawler/metric_names.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace pragma::crawler {

namespace {

constexpr size_t edge_lines = 2;          ///< at the top and bottom of a page, where running titles and page numbers stand
constexpr size_t repeated_on = 3;         ///< pages: a line at the edge of so many is a running title
constexpr size_t max_heading = 90;        ///< characters
constexpr size_t column_gap = 3;          ///< spaces between two columns of a table; justified text has up to two
constexpr size_t max_lines = 2'000'000;

using lines = std::vector<std::string>;

/// The line without a number at its start or end: those of a running title count the pages.
std::string without_page_number(std::string_view line) {
  auto out = one_line(line);
  while (!out.empty() && std::isdigit(static_cast<unsigned char>(out.back()))) out.pop_back();
  return out.erase(0, std::min(out.find_first_not_of("0123456789"), out.size()));
}

/// Where the words behind wide gaps start.
std::vector<size_t> column_starts(std::string_view line) {
  std::vector<size_t> starts;
  size_t spaces = column_gap;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      ++spaces;
      continue;
    }
    if (spaces >= column_gap || starts.empty()) starts.push_back(i);
    spaces = 0;
  }
  return starts;
}

/// The header of a table that goes on over pages is repeated, too, and needed.
bool is_table_header(std::string_view line) {
  std::vector<std::string> cells;
  const auto starts = column_starts(line);
  for (size_t k = 0; k < starts.size(); ++k)
    cells.push_back(one_line(line.substr(starts[k], (k + 1 < starts.size() ? starts[k + 1] : line.size()) - starts[k])));
  return looks_like_header(cells);
}

/// "Counters . . . . . . 17" of a table of contents.
bool is_leader(std::string_view line) {
  return line.find(". . . .") != std::string_view::npos || line.find(".....") != std::string_view::npos;
}

/// Running titles and page numbers: the same words at the edge of many pages.
void drop_running_titles(std::vector<lines>& pages) {
  std::map<std::string, size_t> seen;
  auto edges = [&](const lines& page, auto&& visit) {
    size_t found = 0;
    for (size_t i = 0; i < page.size() && found < edge_lines; ++i)
      if (!page[i].empty()) visit(i), ++found;
    found = 0;
    for (size_t i = page.size(); i > 0 && found < edge_lines; --i)
      if (!page[i - 1].empty()) visit(i - 1), ++found;
  };
  for (const auto& page : pages) edges(page, [&](size_t i) { ++seen[without_page_number(page[i])]; });
  for (auto& page : pages) {
    std::vector<size_t> gone;
    edges(page, [&](size_t i) {
      if (seen[without_page_number(page[i])] >= repeated_on && !is_table_header(page[i])) gone.push_back(i);
    });
    for (const size_t i : gone) page[i].clear();
  }
}

/// 0: no heading. "2.3 Branch counters" is of level 2; a short line in capitals is of level 1.
int heading_level(std::string_view line) {
  const auto text = one_line(line);
  if (text.size() < 3 || text.size() > max_heading || text.ends_with('.') || text.ends_with(',') || text.ends_with(';')) return 0;
  size_t i = 0;
  int dots = 0;
  while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) || (text[i] == '.' && i > 0))) dots += text[i++] == '.';
  if (i > 0 && i < 12 && i < text.size() && text[i] == ' ' &&
      std::isupper(static_cast<unsigned char>(text[i + 1 < text.size() ? i + 1 : i])))
    return text[i - 1] == '.' ? std::max(dots, 1) : dots + 1;
  for (const std::string_view word : {"Chapter ", "Appendix ", "CHAPTER ", "APPENDIX "})
    if (text.starts_with(word)) return 1;
  size_t upper = 0, lower = 0;
  for (const char c : text) {
    upper += c >= 'A' && c <= 'Z';
    lower += c >= 'a' && c <= 'z';
  }
  return upper >= 4 && lower == 0 && text.find(' ') != std::string::npos ? 1 : 0;
}

/// Lines of one group, joined; a word that was broken at the line's end becomes whole.
std::string joined(const lines& group) {
  std::string out;
  for (const auto& line : group) {
    const auto text = one_line(line);
    const bool broken = out.size() > 2 && out.ends_with('-') && std::isalpha(static_cast<unsigned char>(out[out.size() - 2])) &&
                        !text.empty() && std::islower(static_cast<unsigned char>(text[0]));
    if (broken) out.pop_back();
    else if (!out.empty()) out += ' ';
    out += text;
  }
  return out;
}

/// A table where most lines of the group have two or more columns that start at the same places.
bool take_table(const lines& group, document_builder& builder, const std::string& anchor) {
  if (group.size() < 2) return false;
  std::map<size_t, size_t> starts; // column -> lines
  size_t with_columns = 0;
  for (const auto& line : group) {
    size_t found = 0;
    for (const size_t s : column_starts(line)) ++starts[s], ++found;
    with_columns += found >= 2;
  }
  if (with_columns < 2 || with_columns * 2 < group.size()) return false;
  std::vector<size_t> columns;
  for (const auto& [at, count] : starts)
    if (count * 3 >= with_columns && (columns.empty() || at >= columns.back() + column_gap)) columns.push_back(at);
  if (columns.size() < 2 || columns.size() > 12) return false;
  table t;
  for (const auto& line : group) {
    std::vector<std::string> row(columns.size());
    for (size_t k = 0; k < columns.size(); ++k) {
      // A cell may begin a little left of its column where that is right-aligned; it never begins inside a word.
      size_t from = std::min(columns[k], line.size());
      while (k > 0 && from > columns[k - 1] && from < line.size() && line[from - 1] != ' ') --from;
      size_t to = k + 1 < columns.size() ? std::min(columns[k + 1], line.size()) : line.size();
      while (k + 1 < columns.size() && to > from && to < line.size() && line[to - 1] != ' ') --to;
      row[k] = one_line(std::string_view(line).substr(from, to - from));
    }
    // A line without a first cell goes on with the row above.
    if (!t.rows.empty() && row[0].empty()) {
      for (size_t k = 1; k < row.size(); ++k)
        if (!row[k].empty()) t.rows.back()[k] += (t.rows.back()[k].empty() ? "" : " ") + row[k];
    } else {
      t.rows.push_back(std::move(row));
    }
  }
  builder.add_table(std::move(t), {}, anchor);
  return true;
}

bool is_bullet(std::string_view text) {
  return text.starts_with("\xe2\x80\xa2") || text.starts_with("\xe2\x96\xaa") || text.starts_with("\xe2\x97\x8f"); // round and square ones
}

void take_group(lines& group, document_builder& builder, const std::string& anchor) {
  if (group.empty()) return;
  if (const int level = heading_level(group.front()); level > 0 && (group.size() == 1 || column_starts(group.front()).size() == 1)) {
    builder.heading(level, group.front(), anchor);
    group.erase(group.begin());
  }
  if (group.empty()) return;
  if (!take_table(group, builder, anchor)) {
    const auto text = joined(group);
    if (is_bullet(text)) builder.list_item(1, std::string_view(text).substr(3), anchor);
    else builder.paragraph(text, anchor);
  }
  group.clear();
}

} // namespace

expected<document> parse_pdf(std::string_view bytes, std::string_view url) {
  if (bytes.substr(0, 1024).find("%PDF-") == std::string_view::npos)
    return fail(ec::parse_error, std::string(url) + ": not a PDF (no %PDF- at its start)");
  auto folder = temp_dir::create("pragma-pdf");
  if (!folder) return fail(folder.error());
  if (auto written = write_file_atomic(folder->path() / "page.pdf", bytes); !written) return fail(written.error());
  auto out = run_reader({"pdftotext", "-q", "-layout", "-enc", "UTF-8", "-eol", "unix", "page.pdf", "-"}, {}, folder->path(), url,
                        "poppler-utils", true);
  if (!out) return fail(out.error());

  document_builder builder(url);
  std::vector<lines> pages;
  size_t total = 0;
  for (const auto& page : split(to_utf8(*out, "utf-8", false).text, '\f')) {
    pages.emplace_back();
    for (auto& line : split(clean_text(page), '\n')) {
      const auto last = line.find_last_not_of(' ');
      line.resize(last == std::string::npos ? 0 : last + 1);
      pages.back().push_back(std::move(line));
      if (++total > max_lines)
        return fail(ec::limit_exceeded, std::string(url) + ": the PDF has more than " + std::to_string(max_lines) + " lines");
    }
  }
  if (!pages.empty() && pages.back().size() <= 1) pages.pop_back(); // behind the last form feed
  drop_running_titles(pages);
  for (size_t n = 0; n < pages.size() && !builder.full(); ++n) {
    const auto anchor = "page=" + std::to_string(n + 1);
    lines group;
    for (auto& line : pages[n]) {
      const auto text = one_line(line);
      if (text.empty() || is_bullet(text)) take_group(group, builder, anchor);
      if (!text.empty() && !is_leader(text)) group.push_back(std::move(line));
    }
    take_group(group, builder, anchor);
  }
  auto d = builder.finish();
  if (d.blocks.empty()) return fail(ec::unsupported, std::string(url) + ": the PDF has no text (scanned pages, or it is encrypted)");
  return d;
}

} // namespace pragma::crawler
