#include "crawler/html_tags.hpp"

#include "crawler/charset.hpp"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace pragma::crawler {

tag tag_of(std::string_view name) {
  static const std::unordered_map<std::string_view, tag> tags = {{"a", tag::a},
                                                                 {"address", tag::block},
                                                                 {"area", tag::a},
                                                                 {"article", tag::article},
                                                                 {"aside", tag::block},
                                                                 {"audio", tag::invisible},
                                                                 {"base", tag::base},
                                                                 {"blockquote", tag::block},
                                                                 {"body", tag::body},
                                                                 {"br", tag::br},
                                                                 {"button", tag::invisible},
                                                                 {"canvas", tag::invisible},
                                                                 {"caption", tag::caption},
                                                                 {"center", tag::block},
                                                                 {"datalist", tag::invisible},
                                                                 {"dd", tag::dd},
                                                                 {"details", tag::block},
                                                                 {"dialog", tag::invisible},
                                                                 {"div", tag::block},
                                                                 {"dl", tag::dl},
                                                                 {"dt", tag::dt},
                                                                 {"embed", tag::invisible},
                                                                 {"fieldset", tag::block},
                                                                 {"figcaption", tag::block},
                                                                 {"figure", tag::block},
                                                                 {"footer", tag::chrome},
                                                                 {"form", tag::block},
                                                                 {"frame", tag::frame},
                                                                 {"h1", tag::heading},
                                                                 {"h2", tag::heading},
                                                                 {"h3", tag::heading},
                                                                 {"h4", tag::heading},
                                                                 {"h5", tag::heading},
                                                                 {"h6", tag::heading},
                                                                 {"head", tag::head_},
                                                                 {"header", tag::header},
                                                                 {"hr", tag::block},
                                                                 {"html", tag::html},
                                                                 {"iframe", tag::invisible},
                                                                 {"li", tag::li},
                                                                 {"link", tag::link_},
                                                                 {"main", tag::article},
                                                                 {"menu", tag::list},
                                                                 {"meta", tag::meta},
                                                                 {"nav", tag::chrome},
                                                                 {"noembed", tag::invisible},
                                                                 {"noscript", tag::invisible},
                                                                 {"object", tag::invisible},
                                                                 {"ol", tag::list},
                                                                 {"option", tag::invisible},
                                                                 {"p", tag::block},
                                                                 {"pre", tag::pre},
                                                                 {"script", tag::invisible},
                                                                 {"search", tag::chrome},
                                                                 {"section", tag::article},
                                                                 {"select", tag::invisible},
                                                                 {"style", tag::invisible},
                                                                 {"summary", tag::block},
                                                                 {"svg", tag::invisible},
                                                                 {"table", tag::table},
                                                                 {"tbody", tag::table_body},
                                                                 {"td", tag::cell},
                                                                 {"template", tag::invisible},
                                                                 {"textarea", tag::invisible},
                                                                 {"tfoot", tag::table_body},
                                                                 {"th", tag::cell},
                                                                 {"thead", tag::table_head},
                                                                 {"title", tag::title},
                                                                 {"tr", tag::row},
                                                                 {"ul", tag::list},
                                                                 {"video", tag::invisible}};
  const auto it = tags.find(name);
  return it == tags.end() ? tag::inline_ : it->second;
}

bool is_block(tag t) {
  switch (t) {
    case tag::inline_:
    case tag::a:
    case tag::base:
    case tag::br:
    case tag::frame:
    case tag::invisible:
    case tag::link_:
    case tag::meta:
    case tag::title: return false;
    default: return true;
  }
}

// Class names that documentation generators give to what surrounds the text: DocBook, Sphinx and its themes, Doxygen, mandoc.
bool is_chrome_class(std::string_view word, tag t) {
  static constexpr std::string_view anywhere[] = {
      "toc",           "localtoc",    "toctree-wrapper", "breadcrumb", "breadcrumbs",    "wy-breadcrumbs",
      "sphinxsidebar", "wy-nav-side", "navheader",       "navfooter",  "navpath",        "rst-footer-buttons",
      "bd-sidebar",    "bd-toc",      "headerlink",      "skip-link",  "sidebar-toggle", "edit-this-page",
      "cookie-banner", "nav",         "navbar"};
  if (std::find(std::begin(anywhere), std::end(anywhere), word) != std::end(anywhere)) return true;
  return t == tag::table && (word == "head" || word == "foot");
}

std::string without_monstrous_tags(std::string_view html, size_t& removed) {
  std::string out;
  out.reserve(html.size());
  auto name_char = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == ':' || c == '.'; };
  size_t copied = 0;
  for (size_t i = html.find('<'); i != std::string_view::npos; i = html.find('<', i)) {
    if (html.substr(i, 4) == "<!--") {
      const auto end = html.find("-->", i + 4);
      i = end == std::string_view::npos ? html.size() : end + 3;
      continue;
    }
    if (i + 1 >= html.size() || !std::isalpha(static_cast<unsigned char>(html[i + 1]))) {
      ++i;
      continue;
    }
    const size_t start = i;
    size_t attributes = 0;
    for (++i; i < html.size() && html[i] != '>'; ++i) {
      if (name_char(html[i]) && !name_char(html[i - 1])) ++attributes;
      if (html[i] != '=') continue;
      auto quote = html.find_first_not_of(" \t\r\n", i + 1);
      if (quote == std::string_view::npos || (html[quote] != '"' && html[quote] != '\'')) continue;
      const auto end = html.find(html[quote], quote + 1);
      i = end == std::string_view::npos ? html.size() - 1 : end;
    }
    i = std::min(i + 1, html.size());
    if (attributes > 2 * max_attributes) { // names and values count
      out.append(html.substr(copied, start - copied));
      copied = i;
      ++removed;
    }
    // Inside scripts and styles a '<' means nothing.
    const auto name = ascii_lower(html.substr(start + 1, 6));
    for (const std::string_view raw : {"script", "style"}) {
      if (!name.starts_with(raw)) continue;
      while (i < html.size()) {
        i = std::min(html.find("</", i), html.size());
        if (ascii_lower(html.substr(std::min(i + 2, html.size()), raw.size())) == raw) break;
        i = std::min(i + 2, html.size());
      }
    }
  }
  out.append(html.substr(copied));
  return out;
}

} // namespace pragma::crawler
