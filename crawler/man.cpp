// Man pages (man and mdoc macros): mandoc makes HTML of them, in a limited child, and html.cpp reads that.
#include "crawler/charset.hpp"
#include "crawler/child.hpp"
#include "crawler/document_builder.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

namespace pragma::crawler {

namespace {

/// "man1/perf-stat.1" of a page that consists of `.so man1/perf-stat.1`, an alias; empty otherwise.
std::string alias_target(std::string_view roff) {
  std::string target;
  for (const auto& line : split(roff.substr(0, 4096), '\n')) {
    const auto text = trim(line);
    if (text.empty() || text.starts_with(".\\\"") || text.starts_with("'\\\"")) continue;
    if (!text.starts_with(".so ") || !target.empty()) return {};
    target = trim(std::string_view(text).substr(4));
  }
  if (target.ends_with(".gz")) target.resize(target.size() - 3);
  return target.substr(target.rfind('/') + 1);
}

} // namespace

expected<document> parse_man(std::string_view utf8, std::string_view url) {
  if (auto target = alias_target(utf8); !target.empty()) {
    document_builder alias(url);
    alias.add_link("man:" + target, true);
    alias.note("only another name of " + target);
    return alias.finish();
  }
  // An empty folder, for mandoc would look up what the page includes (.so) from where it runs.
  auto folder = temp_dir::create("pragma-man");
  if (!folder) return fail(folder.error());
  auto html = run_reader({"mandoc", "-K", "utf-8", "-T", "html", "-O", "man=man:%N.%S"}, utf8, folder->path(), url, "mandoc", true);
  if (!html) return fail(html.error());
  auto d = parse_html(to_utf8(*html, "utf-8", false).text, url);
  if (!d) return d;
  // "PERF-STAT(1)" is how mandoc names the page; the line below NAME says what it is.
  for (size_t i = 0; i + 1 < d->blocks.size() && i < 4; ++i)
    if (d->blocks[i].what == block::type::heading && d->blocks[i].text == "NAME") d->title += (d->title.empty() ? "" : ": ") + d->blocks[i + 1].text;
  d->title = utf8_prefix(one_line(d->title), 200);
  return d;
}

} // namespace pragma::crawler
