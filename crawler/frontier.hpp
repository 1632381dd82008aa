// All pages of a source that a crawl knows: which of them this generation has reached, how deep, and what is still to be asked.
// Depths are the least number of links from a root, whatever order answers come in, so that a limit cuts the same pages each time.
// Used by crawl_run; touches neither network nor store.
#pragma once

#include "crawler/records.hpp"
#include "crawler/scope.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

namespace pragma {

struct page_node {
  page_record record;
  uint64_t order = 0;          ///< of being reached; earlier ones are asked first
  bool reached = false;        ///< in this generation
  bool done = false;           ///< has its state in this generation
  bool started = false;        ///< asked, the answer is awaited
  bool too_deep = false;
  bool in_scope = false;       ///< meaningful once reached
  bool changed = false;        ///< its record is to be stored with the next commit
  std::string modified;        ///< lastmod of a sitemap
};

class frontier {
public:
  frontier(const crawl_scope& scope, const doc_source& source, int64_t generation);

  /// Records of the store. Those of this generation count as reached; queued ones among them wait again.
  void load(std::vector<page_record> records);

  /// A page was named: as a root, by a link, redirect or sitemap. Queues or excludes it when this generation has not seen it yet,
  /// lowers its depth when this way is shorter. nullptr: not recorded, for there are too many (unrecorded() counts them).
  page_node* reach(const page_url& url, int depth, const std::string& from, bool record_excluded = true);
  /// The same for the pages in scope that this one named when its content was last read.
  void follow_stored_links(page_node& node);
  /// A page left out for another reason than the scope's.
  page_node* exclude(const page_url& url, int depth, const std::string& from, std::string reason);

  page_node* find(const std::string& url);
  /// Its record was changed from outside.
  void touch(page_node& node);
  std::vector<page_node*> all();

  /// What has changed since the last call: records for the store, pages to ask, pages with segments that are out of scope now.
  std::vector<page_record> take_changed(const page_node* but_not = nullptr);
  std::vector<page_node*> take_queued();
  std::vector<page_node*> take_dropped();

  /// A queued page has got its state, or is no longer to be asked.
  void finished(page_node& node);
  int64_t open() const { return open_; }          ///< queued or being asked
  int64_t unrecorded() const { return unrecorded_; }

private:
  page_node* add(const std::string& url);
  void queue(page_node& node);
  void leave_out(page_node& node, std::string reason);
  /// Reached for the first time in this crawl.
  void begin(page_node& node, int depth, const std::string& from);
  void lower(page_node& node, int depth, const std::string& from);
  page_node* reach_one(const page_url& url, int depth, const std::string& from, bool record_excluded);
  void follow_one(const page_node& node);
  void follow_waiting();

  const crawl_scope& scope_;
  const int max_depth_;
  const size_t max_nodes_;
  const int64_t generation_;
  std::unordered_map<std::string, std::unique_ptr<page_node>> nodes_;
  std::unordered_map<uint64_t, page_node*> by_id_;
  std::vector<page_node*> changed_, queued_, dropped_;
  std::vector<page_node*> to_follow_; ///< their stored links are to be reached; a list, for chains of pages are as long as a site likes
  bool following_ = false;
  uint64_t next_order_ = 0;
  int64_t open_ = 0, excluded_ = 0, unrecorded_ = 0;
};

/// link_id() as it stands in page_record::links.
std::string link_text(std::string_view url);

} // namespace pragma
