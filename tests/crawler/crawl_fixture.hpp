// A site, a store and a source that crawls the site's /docs/ without delay: what most tests of the crawl begin with.
#pragma once

#include "plain_parser.hpp"
#include "site_server.hpp"
#include "stores.hpp"

#include <catch2/catch.hpp>

#include <zlib.h>

namespace pragma::test {

struct crawl_case {
  site_server site;
  test_store store;
  doc_source source;
  crawl_options options;
  crawl_parts parts = plain_parts();

  crawl_case() {
    source.profiler = "tool";
    source.docs = {site.url("/docs/")};
    source.allow_private = true;
    source.delay_seconds = 0;
    source.max_seconds = 30;
  }
  expected<crawl_result> go() { return crawl_with(source, store, options, parts); }
  crawl_result must() {
    auto result = go();
    INFO((result ? std::string() : render(result.error())));
    REQUIRE(result);
    return *result;
  }
  page_record page(const std::string& path) const {
    const auto found = store.records.find(path.find("://") == std::string::npos ? site.url(path) : path);
    if (found != store.records.end()) return found->second;
    page_record none;
    none.url = "no record of " + path;
    none.reason = none.url;
    return none;
  }
  page_state state(const std::string& path) const { return page(path).state; }
  std::string reason(const std::string& path) const { return page(path).reason; }
  size_t segments(const std::string& path) const {
    const auto found = store.segments.find(site.url(path));
    return found == store.segments.end() ? 0 : found->second.size();
  }
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline std::string gzip_of(std::string text) {
  z_stream stream{};
  std::string out(text.size() + 1024, '\0');
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A page with links and one paragraph.
inline site_answer page_with(const std::string& text, const std::vector<std::string>& links = {}) {
  std::string body = "<title>" + text + "</title>";
  for (const auto& l : links) body += "<a href=\"" + l + "\">x</a>";
  return html(body + "<p>" + text + "</p>");
}

} // namespace pragma::test

// Where Catch finds them.
namespace pragma {
inline std::ostream& operator<<(std::ostream& out, const crawl_result& r) { return out << json(r).dump(); }
inline std::ostream& operator<<(std::ostream& out, page_state state) { return out << json(state).dump(); }
} // namespace pragma
