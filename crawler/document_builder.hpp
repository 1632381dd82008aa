// Gathers a document block by block for the parsers: cleans each text, gives blocks without an anchor the one of the heading above, and
// stops at the limits with a note. Used by html.cpp, rst.cpp, pdf.cpp and page.cpp.
#pragma once

#include "crawler/parsers.hpp"

#include <set>

namespace pragma::crawler {

class document_builder {
public:
  explicit document_builder(std::string_view url);

  void heading(int level, std::string_view text, std::string_view anchor);
  void paragraph(std::string_view text, std::string_view anchor = {});
  void code(std::string_view text, std::string_view anchor = {});
  void list_item(int level, std::string_view text, std::string_view anchor = {});
  /// Returns where the block lies, for extend(); npos when the limits are reached.
  size_t definition(std::string_view term, std::string_view text, std::string_view anchor = {});
  /// Adds a paragraph to a definition.
  void extend(size_t index, std::string_view text);
  /// A header is found in the first row where the parser saw none and the row's words are those of headers.
  void add_table(table cells, std::string_view caption, std::string_view anchor);
  void add_link(std::string_view target, bool follow);
  void note(std::string text);

  /// Turns the last block into a definition's term where it is a short paragraph; npos otherwise.
  size_t last_paragraph_as_term();
  bool full() const { return full_; }
  document& result() { return d_; }
  document finish();

  static constexpr size_t npos = static_cast<size_t>(-1);

private:
  size_t append(block b);
  std::string anchor_or_above(std::string_view anchor);

  document d_;
  std::set<std::string> seen_links_;
  std::vector<std::pair<int, std::string>> headings_; ///< level and anchor of those that enclose what comes next
  size_t text_bytes_ = 0;
  bool full_ = false;
};

} // namespace pragma::crawler
