// Several HTTP transfers at once (libcurl's multi interface), each with a bound on everything that a stranger's server decides: the
// resolved address, time, headers, body (counted after decompression). Follows no redirect and retries nothing: that is the
// crawl's to decide. Used by crawl_run.
#pragma once

#include "base/http.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct sockaddr;

namespace pragma {

struct fetch_options {
  std::string user_agent;
  double connect_seconds = 10;
  double transfer_seconds = 60;          ///< whole exchange
  size_t connections = 8;                ///< kept open for reuse
  /// Empty for an address that strangers may send us to, else what it is; left empty: special_address().
  std::function<std::string(const sockaddr*)> special;
  std::vector<std::string> resolve;      ///< "host:port:address", before DNS is asked (CURLOPT_RESOLVE); for tests
};

struct transfer {
  uint64_t id = 0;                       ///< the caller's
  std::string url;                       ///< http or https, normalised
  std::string etag, last_modified;       ///< of an earlier answer: the page is wanted only if it is another one
  size_t max_bytes = 0;                  ///< of the body, decompressed
  bool allow_private = false;
  bool documents_only = false;           ///< leave bodies of images, audio, video and fonts alone
  bool first_part = false;               ///< of a longer body the first max_bytes are taken, instead of an error
};

enum class transfer_end {
  answered,        ///< complete, whatever its status; of a status other than 200 the body may be cut
  not_a_document,  ///< documents_only: the type says so
  refused_address, ///< the name leads to an address that is not public
  unreachable,     ///< no such host, no connection, no TLS
  broken,          ///< reset, cut short, not HTTP
  timed_out,
  too_long
};

struct transfer_result {
  uint64_t id = 0;
  transfer_end end = transfer_end::broken;
  std::string problem;                   ///< a sentence; empty when answered
  http_response response;
};

class fetcher {
public:
  static expected<fetcher> create(fetch_options options);
  fetcher(fetcher&&) noexcept;
  ~fetcher();

  expected<void> start(transfer what);
  /// Works on the transfers until one ends or the time is over; returns those that ended.
  std::vector<transfer_result> wait(double seconds);
  size_t active() const;

private:
  struct state;
  explicit fetcher(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace pragma
