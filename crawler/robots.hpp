// robots.txt as RFC 9309 says: which paths of a host this crawler may fetch. Used by the crawl before the first page of each host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pragma {

inline constexpr std::string_view robots_token = "pragma"; ///< the name that a robots.txt calls this crawler by

class robots_rules {
public:
  /// Reads at most the first 500 KiB; lines that it doesn't know are skipped. Groups that name `token` hold, else those of '*'.
  static robots_rules parse(std::string_view text, std::string_view token = robots_token);
  /// By the status of its answer: 2xx is parsed, 429 and 5xx allow nothing, any other everything.
  static robots_rules of_status(int status, std::string_view body);

  /// `target`: path and query, normalised. Empty: it may be fetched; else the line that forbids it.
  std::string refused(std::string_view target) const;
  /// Seconds between two requests; 0 when not said.
  double crawl_delay() const { return delay_; }
  const std::vector<std::string>& sitemaps() const { return sitemaps_; }
  /// Not empty: the file could not be had for now, so that nothing may be fetched.
  const std::string& unavailable() const { return unavailable_; }

private:
  struct rule {
    bool allow = false;
    std::string pattern; ///< normalised
  };
  std::vector<rule> rules_;
  std::vector<std::string> sitemaps_;
  double delay_ = 0;
  std::string unavailable_;
};

} // namespace pragma
