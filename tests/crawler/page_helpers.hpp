// For the tests of the crawler's reading half: pages from tests/crawler/data or as text, and looking things up in what came of them.
#pragma once

#include "base/files.hpp"
#include "base/text.hpp"
#include "crawler/document.hpp"

#include <catch2/catch.hpp>

namespace pragma::test {

inline std::string data_file(const std::string& name) {
  auto text = read_file(std::filesystem::path(TESTS_DIR) / "crawler/data" / name);
  INFO((text ? std::string() : render(text.error())));
  REQUIRE(text);
  return *text;
}

inline document parsed(page_format format, std::string_view text, std::string_view url = "https://docs.example/guide/page.html",
                       std::string_view charset = {}) {
  auto d = parse_page(format, text, url, charset);
  INFO((d ? std::string() : render(d.error())));
  REQUIRE(d);
  return *d;
}

inline error refused(page_format format, std::string_view text, std::string_view url = "https://docs.example/guide/page.html") {
  auto d = parse_page(format, text, url, {});
  REQUIRE_FALSE(d);
  return d.error();
}

inline std::vector<segment> cut(const document& d, const std::string& profiler = "test") {
  return segments_of(d, profiler, "https://docs.example/guide/page.html", "2026-01-02T03:04:05Z");
}

/// All that a reader of the document would see, one block a line.
inline std::string text_of(const document& d) {
  std::string all;
  for (const auto& b : d.blocks) {
    all += b.term + (b.term.empty() ? "" : ": ") + b.text + "\n";
    for (const auto& row : b.cells.rows) all += join(row, " | ") + "\n";
  }
  return all;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline const block* find_block(const document& d, block::type what, const std::string& part = {}) {
  for (const auto& b : d.blocks)
    if (b.what == what && (part.empty() || contains(b.text, part) || contains(b.term, part))) return &b;
  return nullptr;
}

inline const segment* find_record(const std::vector<segment>& all, const std::string& name) {
  for (const auto& s : all)
    if (s.has_record && s.record.name == name) return &s;
  return nullptr;
}

inline const metric_record* find_record(const document& d, const std::string& name) {
  for (const auto& r : d.records)
    if (r.name == name) return &r;
  return nullptr;
}

} // namespace pragma::test
