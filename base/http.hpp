// The one HTTP client of the project (libcurl). http_send() makes one exchange, blocking, with a bound on everything that a
// stranger's server decides: time, header bytes, body bytes (counted after decompression), redirects, protocols. Used by
// llm (OpenAI-compatible endpoints) and by whoever fetches pages; call it from detached actors only.
#pragma once

#include "base/error.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pragma {

using http_headers = std::vector<std::pair<std::string, std::string>>;

struct http_response {
  int status = 0;
  http_headers headers;          ///< names in lower case, of the final response only, in order
  std::string body;              ///< decompressed; empty when http_request::on_body took it
  std::string url;               ///< the address that answered (after redirects)
  double seconds = 0;
  bool stopped = false;          ///< on_body asked for no more; the body is as far as it got

  /// The first header of that name (any case), or nullptr.
  const std::string* header(std::string_view name) const;
  bool ok() const { return status >= 200 && status < 300; }
};

struct http_request {
  std::string method = "GET";               ///< GET, HEAD, POST, PUT, DELETE
  std::string url;                          ///< http or https only
  http_headers headers;                     ///< values never appear in an error
  std::string body;
  double timeout_seconds = 60;              ///< whole exchange, wall clock
  double connect_timeout_seconds = 10;
  size_t max_body_bytes = 64u << 20;        ///< after decompression; more is limit_exceeded
  int max_redirects = 0;                    ///< 0: a 3xx is returned as it is
  bool proxy_from_environment = false;      ///< http_proxy and friends are ignored unless this is set
  /// Takes the body as it arrives (status and headers of `so_far` are complete by then); false stops the exchange, which
  /// is then a success with `stopped` set. Where it is empty the body is collected in http_response::body.
  std::function<bool(const http_response& so_far, std::string_view chunk)> on_body;
  const std::atomic<bool>* cancel = nullptr; ///< noticed within 50 ms
};

/// A response of any status is a success here. invalid_argument (address, method, a header with a line break),
/// timeout, interrupted (cancel), limit_exceeded (body or headers too large), remote_failed (no connection, TLS, reset,
/// closed before the end). The message names the address without its query and user part.
expected<http_response> http_send(const http_request& request);

/// Retry-After in seconds from now: a number of seconds or an HTTP date (a past one is 0); nullopt when absent or garbled.
std::optional<double> retry_after_seconds(const http_response& response);

/// Replaces a key that an endpoint quotes in its messages by `shown`. Keys under 6 characters are no secrets (a local server's "none").
void redact(std::string& text, const std::string& key, const std::string& shown);

/// The address as errors show it: without user, password, query and fragment.
std::string public_url(std::string_view url);

} // namespace pragma
