// Fetches one source's pages and cuts them into segments. Resumable: the frontier is the set of queued pages in the store,
// and each page is committed with its segments and the links that it gave, in one step.
#pragma once

#include "crawler/records.hpp"

#include <atomic>
#include <functional>

namespace pragma {

/// Where a crawl keeps its state. knowledge/ implements it on RocksDB; tests in memory. Called from one thread.
class crawl_store {
public:
  virtual ~crawl_store() = default;
  virtual expected<std::vector<page_record>> pages(const std::string& profiler) = 0;
  /// Atomic and durable. `segments` replaces those of the page; nullopt keeps them. `found`: records to put as they are, with their
  /// segments kept: pages newly queued or excluded, known ones that this crawl asks again, and changed depths.
  virtual expected<void> commit(const std::string& profiler, const page_record& page,
                                const std::optional<std::vector<segment>>& segments, const std::vector<page_record>& found) = 0;
  /// The crawl under way, as crawl() left it: {"generation": 3, "complete": false, ...}; null when there was none.
  virtual expected<json> crawl_state(const std::string& profiler) = 0;
  virtual expected<void> put_crawl_state(const std::string& profiler, const json& state) = 0;
};

struct crawl_progress {
  int64_t done = 0, queued = 0, failed = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  std::string url;              ///< the page that was just finished
};

struct crawl_options {
  int connections = 8;          ///< at once, over all hosts
  int per_host = 2;
  bool offline = false;         ///< do not touch the network: http(s) roots fail with that reason, local ones are read
  std::string user_agent;       ///< empty: "pragma/VERSION (+documentation indexer)"
  std::function<void(const crawl_progress&)> on_progress;
  const std::atomic<bool>* cancel = nullptr;
};

struct crawl_result {
  int64_t generation = 0;
  bool complete = false;        ///< false: a limit or Ctrl-C ended it; the reason says which
  bool resumed = false;
  std::string reason;           ///< of an incomplete crawl; of a complete one what kept old pages, or was left out unrecorded
  int64_t fetched = 0, unchanged = 0, excluded = 0, failed = 0, gone = 0; ///< pages of this generation; excluded: all known
  int64_t segments = 0;         ///< that the source has now
  uint64_t bytes = 0;           ///< of this generation, decompressed
  double seconds = 0;
};
PRAGMA_JSON(crawl_result, generation, complete, resumed, reason, fetched, unchanged, excluded, failed, gone, segments, bytes, seconds)

/// A page's trouble is its state, not an error. Errors: invalid_argument (a root that is no address), io_error (the store, for
/// instance a full disk; what was committed stays, and the next crawl goes on from there).
/// An unfinished crawl is resumed, unless the source's roots or patterns changed or a limit on pages or bytes ended it that still holds.
expected<crawl_result> crawl(const doc_source& source, crawl_store& store, const crawl_options& options);

/// What a crawl would do, without fetching anything but robots.txt and sitemaps: the roots, the rules in words, the known
/// pages that would be asked again, the sitemap's pages in scope.
struct crawl_plan {
  std::vector<std::string> rules;      ///< "only below https://host/docs/", "not *license*"
  std::vector<page_record> pages;      ///< queued, excluded or failed
};
PRAGMA_JSON(crawl_plan, rules, pages)
expected<crawl_plan> plan_crawl(const doc_source& source, crawl_store& store, const crawl_options& options);

} // namespace pragma
