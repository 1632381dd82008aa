// What everybody who drives libcurl needs once: handles that free themselves, and response headers collected with a bound. Used by base/http
// (one exchange, blocking) and crawler/fetch (many at once).
#pragma once

#include "base/http.hpp"
#include "base/text.hpp"

#include <cctype>
#include <memory>

#include <curl/curl.h>

namespace pragma {

struct curl_deleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct curl_multi_deleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct curl_list_deleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using easy_ptr = std::unique_ptr<CURL, curl_deleter>;
using multi_ptr = std::unique_ptr<CURLM, curl_multi_deleter>;
using slist_ptr = std::unique_ptr<curl_slist, curl_list_deleter>;

/// False: out of memory; the list is as it was.
inline bool append(slist_ptr& list, const std::string& line) {
  auto* grown = curl_slist_append(list.get(), line.c_str());
  if (!grown) return false;
  list.release(); // libcurl returns the head of the same list
  list.reset(grown);
  return true;
}

/// Header lines of one exchange; after a redirect or "100 Continue" only the last response counts.
struct header_collector {
  static constexpr size_t max_bytes = 256 << 10; ///< a page's headers are a few KiB; libcurl before 8.3 has no total of its own
  size_t bytes = 0;
  bool too_many = false;

  /// What a CURLOPT_HEADERFUNCTION returns for this line.
  size_t take(const char* data, size_t size, http_headers& headers) {
    bytes += size;
    too_many = bytes > max_bytes;
    if (too_many) return 0;
    const std::string line = trim(std::string_view(data, size));
    if (line.starts_with("HTTP/")) {
      headers.clear();
      return size;
    }
    const auto colon = line.find(':');
    if (colon != std::string::npos)
      headers.emplace_back(ascii_lower(trim(std::string_view(line).substr(0, colon))), trim(std::string_view(line).substr(colon + 1)));
    return size;
  }
};

} // namespace pragma
