// What html.cpp knows of HTML's elements: which matter to a document's structure, which are never read, and which class names
// documentation generators give to what surrounds a page's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pragma::crawler {

enum class tag : uint8_t {
  inline_,
  block,
  a,
  article,
  base,
  body,
  br,
  caption,
  cell,
  chrome,
  dd,
  dl,
  dt,
  frame,
  head_,
  header,
  heading,
  html,
  invisible,
  li,
  link_,
  list,
  meta,
  pre,
  row,
  table,
  table_head,
  table_body,
  title
};

/// `name` in lower case; unknown elements are inline.
tag tag_of(std::string_view name);
/// Its start and end separate paragraphs.
bool is_block(tag t);
/// Navigation, tables of contents, running headers and the like.
bool is_chrome_class(std::string_view word, tag t);

inline constexpr size_t max_attributes = 256; ///< of one tag: libxml2 compares each with each
/// Takes tags with more attributes out before libxml2 sees them; `removed` counts them.
std::string without_monstrous_tags(std::string_view html, size_t& removed);

} // namespace pragma::crawler
