// Unpacks gzip with a bound: manual pages on disk and sitemap.xml.gz. (What a server sends with Content-Encoding, libcurl unpacks.)
#pragma once

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace pragma {

bool is_gzip(std::string_view bytes);

/// All members, one after the other. limit_exceeded above `max_bytes` of output; parse_error: damaged or cut short.
expected<std::string> gunzip(std::string_view packed, size_t max_bytes);

} // namespace pragma
