// Markdown (GitHub's dialect) -> HTML by md4c's events -> document by html.cpp, so that HTML inside Markdown is read as it is on
// the web. md4c's own HTML writer cannot be stopped, and a few link definitions make gigabytes of a small file: hence this one.
#include "crawler/parsers.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <md4c.h>

namespace pragma::crawler {

namespace {

constexpr size_t max_html_bytes = limits::source_bytes;

struct writer {
  std::string html;
  int images = 0;              // inside an image only its alternative text is written

  void escaped(std::string_view text) {
    for (const char c : text) {
      if (c == '<') html += "&lt;";
      else if (c == '>') html += "&gt;";
      else if (c == '&') html += "&amp;";
      else if (c == '"') html += "&quot;";
      else html += c;
    }
  }
  void attribute(const MD_ATTRIBUTE& a) {
    for (size_t i = 0; a.text && a.substr_offsets[i] < a.size; ++i) {
      const std::string_view piece(a.text + a.substr_offsets[i], a.substr_offsets[i + 1] - a.substr_offsets[i]);
      if (a.substr_types[i] == MD_TEXT_ENTITY) html += piece;
      else if (a.substr_types[i] == MD_TEXT_NULLCHAR) html += "\xef\xbf\xbd";
      else escaped(piece);
    }
  }
  int state() const { return html.size() > max_html_bytes ? 1 : 0; }
};

const char* element_of(MD_BLOCKTYPE type) {
  switch (type) {
    case MD_BLOCK_QUOTE: return "blockquote";
    case MD_BLOCK_UL: return "ul";
    case MD_BLOCK_OL: return "ol";
    case MD_BLOCK_LI: return "li";
    case MD_BLOCK_CODE: return "pre";
    case MD_BLOCK_P: return "p";
    case MD_BLOCK_TABLE: return "table";
    case MD_BLOCK_THEAD: return "thead";
    case MD_BLOCK_TBODY: return "tbody";
    case MD_BLOCK_TR: return "tr";
    case MD_BLOCK_TH: return "th";
    case MD_BLOCK_TD: return "td";
    default: return nullptr; // the document, rules, raw HTML, headings
  }
}

int enter_block(MD_BLOCKTYPE type, void* detail, void* self) {
  auto& w = *static_cast<writer*>(self);
  if (type == MD_BLOCK_H) w.html += "<h" + std::to_string(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level) + ">";
  else if (type == MD_BLOCK_HR) w.html += "<hr>";
  else if (const char* element = element_of(type)) w.html += std::string("<") + element + ">";
  return w.state();
}

int leave_block(MD_BLOCKTYPE type, void* detail, void* self) {
  auto& w = *static_cast<writer*>(self);
  if (type == MD_BLOCK_H) w.html += "</h" + std::to_string(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level) + ">\n";
  else if (const char* element = element_of(type)) w.html += std::string("</") + element + ">\n";
  return w.state();
}

int enter_span(MD_SPANTYPE type, void* detail, void* self) {
  auto& w = *static_cast<writer*>(self);
  if (type == MD_SPAN_IMG) ++w.images;
  if (type == MD_SPAN_A && w.images == 0) {
    w.html += "<a href=\"";
    w.attribute(static_cast<MD_SPAN_A_DETAIL*>(detail)->href);
    w.html += "\">";
  }
  return w.state();
}

int leave_span(MD_SPANTYPE type, void*, void* self) {
  auto& w = *static_cast<writer*>(self);
  if (type == MD_SPAN_IMG) --w.images;
  if (type == MD_SPAN_A && w.images == 0) w.html += "</a>";
  return w.state();
}

int take_text(MD_TEXTTYPE type, const MD_CHAR* data, MD_SIZE size, void* self) {
  auto& w = *static_cast<writer*>(self);
  const std::string_view text(data, size);
  switch (type) {
    case MD_TEXT_NULLCHAR: w.html += "\xef\xbf\xbd"; break;
    case MD_TEXT_BR: w.html += "<br>"; break;
    case MD_TEXT_SOFTBR: w.html += "\n"; break;
    case MD_TEXT_ENTITY:
    case MD_TEXT_HTML: w.html += text; break;
    default: w.escaped(text);
  }
  return w.state();
}

/// The block between two lines of hyphens at the very start, which site generators read and readers never see; its title.
std::string_view without_front_matter(std::string_view text, std::string& title) {
  if (!text.starts_with("---\n") && !text.starts_with("---\r\n")) return text;
  size_t at = text.find('\n') + 1;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = trim(text.substr(at, end - at));
    at = std::min(end + 1, text.size());
    if (line == "---" || line == "...") return text.substr(at);
    if (line.starts_with("title:")) title = trim(std::string_view(line).substr(6));
  }
  title.clear();
  return text;
}

} // namespace

expected<document> parse_markdown(std::string_view utf8, std::string_view url) {
  if (utf8.size() > limits::markdown_bytes)
    return fail(ec::limit_exceeded,
                std::string(url) + ": " + format_bytes(static_cast<double>(utf8.size())) + " of Markdown, more than the " +
                    format_bytes(static_cast<double>(limits::markdown_bytes)) + " that are read",
                "leave the page out with a deny pattern");
  std::string title;
  const auto text = without_front_matter(utf8, title);
  MD_PARSER parser{};
  parser.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS;
  parser.enter_block = enter_block;
  parser.leave_block = leave_block;
  parser.enter_span = enter_span;
  parser.leave_span = leave_span;
  parser.text = take_text;
  writer w;
  const int ended = ::md_parse(text.data(), static_cast<MD_SIZE>(text.size()), &parser, &w);
  if (ended < 0) return fail(ec::internal, std::string(url) + ": md4c could not read this Markdown (out of memory?)");
  if (w.html.size() > limits::source_bytes) w.html.resize(limits::source_bytes);
  auto d = parse_html(w.html, url, {.slug_anchors = true});
  if (!d) return d;
  if (!title.empty()) d->title = title;
  if (ended > 0) d->notes.push_back("cut: its link definitions expand to more than " + format_bytes(static_cast<double>(max_html_bytes)));
  return d;
}

} // namespace pragma::crawler
