// Addresses of pages: parsed, normalised (RFC 3986, 6.2.2) and resolved, so that one page has one name in the store and what
// we check is what libcurl is given. Four schemes: http, https, file, man. Used by everything that fetches.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pragma {

struct page_url {
  std::string scheme;   ///< "http", "https", "file", "man"
  std::string host;     ///< lower case, IPv6 in brackets; empty for file and man
  int port = 0;         ///< 0: the scheme's own
  std::string path;     ///< percent-encoded, begins with '/', without dot segments; of man: "perf-stat.1"
  std::string query;    ///< without '?'
  std::string fragment; ///< without '#', as it was written

  bool web() const { return scheme == "http" || scheme == "https"; }
  /// The whole without the fragment: page_record::url.
  std::string text() const;
  /// "https://host:8080", without the port where it is the scheme's own; empty for file and man.
  std::string origin() const;
  /// Path and query, as robots.txt and patterns see them.
  std::string target() const;
};

/// invalid_argument: no address, a user part, a host that is not ASCII, longer than 4 KiB; unsupported: another scheme.
/// The message is one clause about the address and does not repeat more than its first 200 bytes.
expected<page_url> parse_url(std::string_view text);

/// A reference as a page gives it ("../x.html#y", "//host/z"), against that page's address.
expected<page_url> resolve_url(const page_url& base, std::string_view reference);

/// A root as the user writes it: an address, "man:perf-stat.1", or a path (relative to the working directory).
expected<page_url> parse_root(std::string_view text);

/// file:// address of an absolute path, and back. invalid_argument: an encoded NUL.
page_url file_url(std::string_view absolute_path);
expected<std::string> file_path(const page_url& url);

/// The path up to and with its last '/'.
std::string folder_of(const page_url& url);

/// FNV-1a: the name of a page in page_record::links, 16 hex digits there.
uint64_t link_id(std::string_view url);

} // namespace pragma
