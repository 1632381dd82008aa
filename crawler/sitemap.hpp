// Sitemaps (sitemaps.org): XML, index files, plain lists, each also packed with gzip. Nothing outside the bytes is read: no network,
// no entities. Used by the crawl, which applies its scope to what they name.
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

inline constexpr size_t max_sitemap_bytes = 50u << 20;   ///< unpacked; the protocol's own limit
inline constexpr size_t max_sitemap_entries = 50'000;    ///< likewise

struct sitemap_entry {
  std::string url;      ///< as written
  std::string modified; ///< lastmod, may be empty
};

struct sitemap {
  bool index = false;   ///< the entries are further sitemaps
  bool truncated = false; ///< too many entries, or the file breaks off
  std::vector<sitemap_entry> entries;
};

/// parse_error: neither a sitemap nor a list of addresses, or one with a DTD; limit_exceeded: unpacks to more than 50 MiB.
expected<sitemap> parse_sitemap(std::string_view bytes);

} // namespace pragma
