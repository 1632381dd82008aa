// One crawl from its first to its last page: crawl() and plan_crawl() are this with the parts that a user gets. Tests put a parser
// or an address check of their own in; nobody else includes this. crawl_run.cpp has the beginning, the loop and the end, crawl_pages.cpp
// what an answer does to its page, crawl_hosts.cpp robots.txt, sitemaps and the pace of each host.
#pragma once

#include "crawler/crawl.hpp"
#include "crawler/document.hpp"
#include "crawler/fetch.hpp"
#include "crawler/frontier.hpp"
#include "crawler/outcome.hpp"
#include "crawler/robots.hpp"
#include "crawler/scope.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <set>

namespace pragma {

inline constexpr int max_redirects = 5; ///< after one another, and of a root, when looking for what it led to

struct crawl_parts {
  std::function<page_format(std::string_view url, std::string_view content_type, std::string_view bytes)> format;
  std::function<expected<document>(page_format format, std::string_view bytes, std::string_view url, std::string_view charset)> parse;
  std::function<std::vector<segment>(const document& d, const std::string& profiler, const std::string& url, const std::string& fetched)> cut;
  std::function<std::string(const sockaddr*)> special;   ///< fetch_options::special
  std::vector<std::string> resolve;                      ///< fetch_options::resolve
  std::vector<std::string> man_path;                     ///< empty: the system's
  double connect_seconds = 10, transfer_seconds = 60;
  double retry_seconds = 1;                              ///< before the second try; doubles, with jitter
};

expected<crawl_result> crawl_with(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts);
expected<crawl_plan> plan_with(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts);

class crawl_run {
public:
  using clock = std::chrono::steady_clock;

  crawl_run(const doc_source& source, crawl_store& store, const crawl_options& options, const crawl_parts& parts);
  expected<void> begin(bool plan_only);
  expected<crawl_result> run();
  expected<crawl_plan> plan();

private:
  struct sitemap_task {
    page_url url;
    bool declared = false;   ///< by robots.txt or an index: its trouble is worth a record
    int level = 0;           ///< of index files above it
    int hops = 0;            ///< redirects followed
  };
  struct queue_entry {
    int depth;
    uint64_t order;
    page_node* node;
    bool operator<(const queue_entry& o) const { return depth != o.depth ? depth < o.depth : order < o.order; }
  };
  /// One scheme, host and port: its rules, its pace, its pages that wait.
  struct origin {
    std::string name;
    bool sitemaps_wanted = false;
    enum class robots_state { unknown, asked, known } robots = robots_state::unknown;
    robots_rules rules;
    std::string dead;        ///< why nothing more is asked here; empty: alive
    std::deque<sitemap_task> sitemaps;
    int sitemaps_seen = 0;
    std::set<queue_entry> queue;
    int active = 0;
    int lost = 0;            ///< answers missing one after the other
    clock::time_point next{}; ///< not before
  };
  enum class job_kind { robots, sitemap, page };
  struct job {
    job_kind kind = job_kind::page;
    origin* host = nullptr;
    page_node* node = nullptr;
    page_url url;
    sitemap_task task;
    int tries = 0, hops = 0;
    bool conditional = false;
  };

  // crawl_run.cpp
  expected<void> read_state(bool plan_only);
  void seed();
  void seed_folder(const page_url& root, const std::string& path);
  void place_queued();
  bool work_local();
  bool page_budget_left() const;
  bool idle() const;
  std::string what_ends_it();
  double seconds_to_next() const;
  double elapsed() const;
  expected<void> save_state(bool complete);
  void commit(page_node& node, const std::optional<std::vector<segment>>& segments);
  void commit_changed();
  void remove_unlinked();
  std::string site_of(const std::string& address) const;
  std::multimap<std::string, std::string> unanswered_sites();
  crawl_result summary(bool complete, std::string reason);

  // crawl_hosts.cpp
  origin& origin_of(const page_url& url);
  bool start_next();
  bool start_job(job j);
  void release_waiting();
  void answered(const transfer_result& result);
  bool retry_later(job& j, const page_outcome& outcome, std::string* reason);
  void robots_answered(job& j, const transfer_result& result);
  void rules_known(origin& host);
  void sitemap_answered(job& j, const transfer_result& result);
  void sitemap_named(origin& host, const std::string& text, const std::string& from, bool declared, int level);
  void fail_all(origin& host);

  // crawl_pages.cpp
  bool settle_without_asking(page_node& node, origin& host);
  void page_answered(job& j, const transfer_result& result);
  void redirected(page_node& node, const page_url& url, const std::string& target, int status);
  void local_answered(page_node& node);
  struct content {
    std::string_view bytes;
    std::string name;           ///< what the format goes by
    std::string type;           ///< Content-Type
    bool man = false;
    std::string robots;         ///< X-Robots-Tag
  };
  void content_arrived(page_node& node, const content& c);
  void follow_links(page_node& node, const document& d);
  page_node* better_twin(page_node& node, const std::string& hash);
  void claim_content(page_node& node);
  void lose_content(page_node& node, const page_node& to);
  void finish(page_node& node, page_state state, std::string reason, const std::optional<std::vector<segment>>& segments = std::nullopt);

  const doc_source& source_;
  crawl_store& store_;
  const crawl_options& options_;
  const crawl_parts& parts_;
  std::optional<crawl_scope> scope_;
  std::optional<frontier> frontier_;
  std::optional<fetcher> fetcher_;
  bool plan_only_ = false;

  int64_t generation_ = 1;
  bool resumed_ = false;
  bool reread_ = false;         ///< the scope or our parsers changed: ask for everything, read everything again
  std::string fingerprint_;     ///< of what decides which pages and links count
  std::string ended_by_;        ///< "pages", "bytes", "seconds", "cancelled": for the state in the store
  std::string limit_reason_;
  std::string seed_trouble_;
  std::multimap<std::string, std::string> uncertain_sites_; ///< hosts with a sitemap that could not be had for now, and why
  std::vector<std::string> notes_;
  std::optional<error> store_problem_;

  clock::time_point start_ = clock::now();
  uint64_t bytes_ = 0;
  int64_t asked_ = 0;           ///< pages, of this generation
  int64_t finished_ = 0, failed_ = 0; ///< for on_progress
  std::map<std::string, origin> origins_;
  std::set<queue_entry> local_;
  std::unordered_map<uint64_t, job> jobs_;
  std::multimap<clock::time_point, job> waiting_;
  uint64_t next_job_ = 0;
  std::unordered_map<std::string, page_node*> by_hash_;
  std::vector<page_node*> twins_; ///< done pages that lost their content to a better address, to be committed
  std::mt19937 random_{std::random_device{}()};
};


} // namespace pragma
