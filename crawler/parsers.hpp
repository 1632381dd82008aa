// One function per format, all from clean bytes to a document; parse_page() in page.cpp chooses among them. And the limits that hold
// for each of them: what a stranger's page may cost. Used inside this room only.
#pragma once

#include "crawler/document.hpp"

namespace pragma::crawler {

namespace limits {
inline constexpr size_t text_bytes = 10u << 20;      ///< of one document; more is cut, with a note
inline constexpr size_t source_bytes = 32u << 20;    ///< of a page that a parser takes at all
inline constexpr size_t markdown_bytes = 8u << 20;
inline constexpr size_t yaml_bytes = 4u << 20;       ///< yaml-cpp needs some hundred times that in memory
inline constexpr size_t blocks = 200'000;            ///< of one document
inline constexpr size_t records = 100'000;           ///< of one catalogue: the largest real one has 40,000
inline constexpr size_t links = 20'000;
inline constexpr size_t url_bytes = 4096;
inline constexpr size_t anchor_bytes = 256;
inline constexpr size_t table_columns = 128;
inline constexpr size_t table_cells = 200'000;
inline constexpr double child_seconds = 60;          ///< wall clock and CPU of mandoc, pdftotext, gzip on one page
inline constexpr uint64_t child_memory_bytes = 1ull << 30;
inline constexpr size_t child_output_bytes = 64u << 20;
} // namespace limits

struct html_options {
  bool slug_anchors = false;     ///< headings without an id get the one that GitHub would give them
};

// `utf8`: decoded by to_utf8(), not yet cleaned. `url`: where relative links and messages refer to.
expected<document> parse_html(std::string_view utf8, std::string_view url, const html_options& options = {});
expected<document> parse_markdown(std::string_view utf8, std::string_view url);
expected<document> parse_man(std::string_view utf8, std::string_view url);
expected<document> parse_pdf(std::string_view bytes, std::string_view url);
expected<document> parse_rst(std::string_view utf8, std::string_view url);
expected<document> parse_asciidoc(std::string_view utf8, std::string_view url);
expected<document> parse_text(std::string_view utf8, std::string_view url);
expected<document> parse_json_catalogue(std::string_view utf8, std::string_view url);
expected<document> parse_csv_catalogue(std::string_view utf8, std::string_view url);
expected<document> parse_yaml_catalogue(std::string_view utf8, std::string_view url);

/// `perf list` as perf before 6.2 prints it, which knew no JSON; tracepoints are left out.
bool is_perf_list(std::string_view utf8);
document parse_perf_list(std::string_view utf8, std::string_view url);

/// One of LIKWID's performance groups (SHORT, EVENTSET, METRICS, LONG): its metrics with their formulas in events.
bool is_performance_group(std::string_view utf8);
document parse_performance_group(std::string_view utf8, std::string_view url);

/// The records that a tree of objects describes, whatever the nesting: see catalogue.cpp for the shapes. Adds to d.records.
void take_records(const json& root, document& d);
/// Cleaned and bounded, into d.records; false when it has no name or the limit is reached.
bool add_record(document& d, metric_record r);
/// The error of a catalogue that names no metric; `seen`: what stood there instead.
tl::unexpected<error> no_records(std::string_view url, std::string_view format, const std::string& seen);

/// The address of `target` as seen from `base` (RFC 3986), or empty where a crawler has no business: other schemes, too long.
std::string absolute_url(std::string_view target, const std::string& base);

/// The anchor that GitHub gives a heading: lower case, punctuation gone, spaces to hyphens. A second one of the same name gets
/// "-1", which is the caller's business.
std::string github_slug(std::string_view heading);

/// The identifier that docutils makes of a title or label: lower-case ASCII letters and digits, anything else a hyphen.
std::string docutils_id(std::string_view text);

} // namespace pragma::crawler
