// A parser just good enough to test fetching: titles, links and paragraphs of plain HTML. The crawl under test gets it through crawl_parts.
#pragma once

#include "base/hash.hpp"
#include "crawler/crawl_run.hpp"

#include <string>
#include <string_view>

namespace pragma::test {

inline std::string between(std::string_view text, std::string_view from, std::string_view to, size_t* at) {
  const auto start = text.find(from, *at);
  if (start == std::string_view::npos) {
    *at = std::string_view::npos;
    return {};
  }
  const auto end = std::min(text.find(to, start + from.size()), text.size());
  *at = end;
  return std::string(text.substr(start + from.size(), end - start - from.size()));
}

inline page_format plain_format(std::string_view url, std::string_view type, std::string_view) {
  const auto dot = url.substr(url.rfind('/') + 1).rfind('.');
  const auto ending = dot == std::string_view::npos ? std::string_view() : url.substr(url.rfind('.') + 1);
  if (type.starts_with("text/html") || ending == "html") return page_format::html;
  if (ending == "md" || type.starts_with("text/markdown")) return page_format::markdown;
  if (ending == "1" || ending == "5") return page_format::man;
  if (type.starts_with("text/plain") || ending == "txt") return page_format::text;
  return page_format::unknown;
}

inline expected<document> plain_parse(page_format, std::string_view bytes, std::string_view, std::string_view charset) {
  document d;
  if (bytes.find("PARSE-ERROR") != std::string_view::npos) return fail(ec::parse_error, "line 1: a parse error was asked for");
  size_t at = 0;
  d.title = between(bytes, "<title>", "<", &at);
  for (at = 0; at != std::string_view::npos;) {
    const auto target = between(bytes, "href=\"", "\"", &at);
    if (at == std::string_view::npos) break;
    link l;
    l.target = target;
    l.follow = bytes.substr(at, 16).find("nofollow") == std::string_view::npos;
    d.links.push_back(l);
  }
  d.index = bytes.find("content=\"noindex") == std::string_view::npos;
  d.follow = bytes.find(",nofollow\"") == std::string_view::npos;
  d.charset = std::string(charset);
  for (at = 0; at != std::string_view::npos;) {
    block b;
    b.text = between(bytes, "<p>", "</p>", &at);
    if (at != std::string_view::npos) d.blocks.push_back(b);
  }
  if (d.blocks.empty() && bytes.find('<') == std::string_view::npos) {
    block b;
    b.text = std::string(bytes);
    d.blocks.push_back(b);
  }
  return d;
}

inline std::vector<segment> plain_cut(const document& d, const std::string& profiler, const std::string& url, const std::string& fetched) {
  std::vector<segment> out;
  for (const auto& b : d.blocks) {
    segment s;
    s.profiler = profiler;
    s.url = url;
    s.text = b.text;
    s.fetched = fetched;
    s.id = sha256_hex(profiler + "\n" + b.text);
    out.push_back(s);
  }
  return out;
}

/// Quick retries; everything else as a user has it.
inline crawl_parts plain_parts() {
  crawl_parts parts;
  parts.format = plain_format;
  parts.parse = plain_parse;
  parts.cut = plain_cut;
  parts.retry_seconds = 0.01;
  return parts;
}

} // namespace pragma::test
