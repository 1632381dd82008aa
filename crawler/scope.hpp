// How far a crawl goes: the user's allow and deny patterns, by default the folder of each root, and built-in rules for pages that
// waste the budget (licences, news, searches, binary files). Says for each address the rule that leaves it out.
#pragma once

#include "crawler/records.hpp"
#include "crawler/url.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

/// True when all of `text` fits the pattern; `*` stands for any bytes, '/' too. Linear in practice, never exponential.
bool glob_match(std::string_view pattern, std::string_view text);

class crawl_scope {
public:
  /// A pattern that begins with a scheme ("https://host/docs/*", "man:perf-*") is matched against the whole address; any other
  /// ("/docs/*", "*.html") against the path with its query, and as `allow` only on the hosts of the roots. A pattern that ends in
  /// '/' stands for everything below. invalid_argument: a root that is no address, no root, an empty pattern.
  static expected<crawl_scope> from(const doc_source& source);

  /// Empty: in scope. Else the rule that leaves it out, for page_record::reason.
  std::string refused(const page_url& url) const;
  /// In words, for the user to see before a crawl.
  std::vector<std::string> rules() const;

  const std::vector<page_url>& roots() const { return roots_; }
  /// True for http(s) hosts that a root or an allow pattern without `*` in its host names: they may be private where the source says so.
  bool names_host(const page_url& url) const;

private:
  struct base {
    page_url root;
    std::string folder;    ///< "/docs/"; of a root without an extension also that page itself
  };
  bool below_a_root(const page_url& url, std::string* rest) const;
  bool allowed(const page_url& url) const;

  std::vector<page_url> roots_;
  std::vector<base> bases_;
  std::vector<std::string> allow_, deny_;
};

} // namespace pragma
