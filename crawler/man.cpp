// Man pages (man and mdoc macros): mandoc makes HTML of them, in a limited child, and html.cpp reads that.
#include "crawler/charset.hpp"
#include "crawler/child.hpp"
#include "crawler/document_builder.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>

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

/// "perf-record(1)" in the text below SEE ALSO: pages made with the man macros have no other links.
void link_see_also(document_builder& links, const document& d) {
  bool see_also = false;
  for (const auto& b : d.blocks) {
    if (b.what == block::type::heading) see_also = b.text == "SEE ALSO";
    if (!see_also) continue;
    for (auto open = b.text.find('('); open != std::string::npos; open = b.text.find('(', open + 1)) {
      const auto close = b.text.find(')', open);
      if (close == std::string::npos || close - open > 4 || close == open + 1 || b.text[open + 1] < '1' || b.text[open + 1] > '8') continue;
      size_t start = open;
      while (start > 0 && (std::isalnum(static_cast<unsigned char>(b.text[start - 1])) ||
                           std::string_view("_.+:-").find(b.text[start - 1]) != std::string_view::npos))
        --start;
      if (start < open) links.add_link("man:" + b.text.substr(start, open - start) + "." + b.text.substr(open + 1, close - open - 1), true);
    }
  }
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
    if (d->blocks[i].what == block::type::heading && d->blocks[i].text == "NAME")
      d->title += (d->title.empty() ? "" : ": ") + d->blocks[i + 1].text;
  d->title = utf8_prefix(one_line(d->title), 200);
  document_builder links(url);
  link_see_also(links, *d);
  for (auto& l : links.result().links)
    if (std::none_of(d->links.begin(), d->links.end(), [&](const auto& have) { return have.target == l.target; }))
      d->links.push_back(std::move(l));
  return d;
}

} // namespace pragma::crawler
