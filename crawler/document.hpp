// Bytes of a page -> its structure -> segments. One parser per format (html.cpp, markdown.cpp, man.cpp, pdf.cpp, rst.cpp,
// catalogue.cpp); all give a document, which segments_of() cuts. No parser fetches anything.
#pragma once

#include "crawler/records.hpp"

namespace pragma {

struct table {
  std::vector<std::string> header;              ///< may be empty
  std::vector<std::vector<std::string>> rows;   ///< cells as plain text
  std::vector<std::string> anchors;             ///< per row, may be empty strings
};

struct block {
  enum class type { heading, paragraph, code, list_item, definition, table };
  type what = type::paragraph;
  int level = 0;                 ///< of a heading, from 1
  std::string anchor;            ///< id or name of the element, or of the heading above
  std::string term;              ///< of a definition
  std::string text;              ///< plain UTF-8
  table cells;
};

struct link {
  std::string target;            ///< absolute, as the page's base says; fragment kept
  bool follow = true;            ///< false: rel=nofollow
};

struct document {
  std::string title, language;
  std::string charset;           ///< what the bytes were decoded from
  std::vector<block> blocks;
  std::vector<link> links;
  std::string base;              ///< address that relative links rest on
  bool index = true, follow = true; ///< false: the page's robots meta says no
  std::vector<metric_record> records; ///< of a catalogue (JSON, CSV, YAML): no blocks then
  std::vector<std::string> notes; ///< "cut at 10 MiB of text", "3 invalid bytes replaced"
};

enum class page_format { html, markdown, man, pdf, rst, asciidoc, json_catalogue, csv_catalogue, yaml_catalogue, text, unknown };
/// By extension where the server's type says little (text/plain, application/octet-stream), by the first bytes last.
page_format format_of(std::string_view url, std::string_view content_type, std::string_view bytes);
const char* name(page_format format);

/// `declared_charset`: of the Content-Type, may be empty. parse_error (truncated JSON, with position), unsupported (a format
/// without a parser here; the message names the program that is missing), limit_exceeded.
expected<document> parse_page(page_format format, std::string_view bytes, std::string_view url, std::string_view declared_charset);

/// Cuts by headings; a table row or definition that names a metric is a segment of its own; long text is cut at paragraphs
/// (about 1,500 characters), code stays with the paragraph before it.
std::vector<segment> segments_of(const document& d, const std::string& profiler, const std::string& url, const std::string& fetched);

/// True for words that look like a metric's or event's name: Bcm, cache-misses, smsp__cycles_active.avg, INST_RETIRED.ANY,
/// SQ_WAVES, FETCH_SIZE; not for plain words of the language.
bool looks_like_metric(std::string_view word);

/// The output of a tool's own catalogue command (`perf list -j --details`, `ncu --csv --query-metrics`; with page_format::text also `perf
/// list` of perf before 6.2) as segments.
expected<std::vector<segment>> catalogue_segments(page_format format, std::string_view text, const std::string& profiler,
                                                  const std::string& origin, const std::string& fetched);

} // namespace pragma
