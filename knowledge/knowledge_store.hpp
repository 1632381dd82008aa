// The compendium and all that it is made from, in RocksDB: registered sources, pages with their state, segments, summaries,
// entries. Truth for everything; the indexes of retrieval.hpp are projections of `entries`, stamped with its generation. One
// writer (`pragma kb build`); readers (`pragma ask`, a run's Conductor) open read-only beside it.
#pragma once

#include "crawler/crawl.hpp"
#include "knowledge/entry.hpp"
#include "knowledge/manifest.hpp"

#include <filesystem>
#include <functional>
#include <memory>

namespace pragma {

/// What the entries are at present.
struct compendium_state {
  int64_t generation = 0;             ///< counts up whenever an entry changes; 0: never built
  std::string content_hash;           ///< SHA-256 over all entries in order of id
  int64_t entries = 0;
  std::string built;                  ///< ISO time of the last build that ended, changed or not
  std::string summarised_by;          ///< summariser_name() of that build
};
PRAGMA_JSON(compendium_state, generation, content_hash, entries, built, summarised_by)

class knowledge_store : public crawl_store {
public:
  enum class mode { read_write, read_only };
  /// As run_store::open().
  static expected<knowledge_store> open(const std::filesystem::path& folder, mode m);
  knowledge_store(knowledge_store&&) noexcept;
  knowledge_store& operator=(knowledge_store&&) noexcept;
  ~knowledge_store() override;

  // Profilers that the user registered, beside those that are shipped (manifest.hpp).
  expected<void> put_manifest(const profiler_manifest& m);
  expected<std::vector<profiler_manifest>> manifests() const;
  /// With its pages, segments and crawl state; summaries stay until collect_garbage(). Whether it was there is not an error.
  expected<void> remove_profiler(const std::string& profiler, bool keep_manifest = false);

  // crawl_store
  expected<std::vector<page_record>> pages(const std::string& profiler) override;
  expected<void> commit(const std::string& profiler, const page_record& page, const std::optional<std::vector<segment>>& segments,
                        const std::vector<page_record>& found) override;
  expected<json> crawl_state(const std::string& profiler) override;
  expected<void> put_crawl_state(const std::string& profiler, const json& state) override;

  /// In order of page and place on it. An error of `take` ends it.
  expected<void> each_segment(const std::string& profiler, const std::function<expected<void>(segment)>& take) const;
  expected<std::vector<std::string>> profilers_with_segments() const;
  /// Segments that no page gave, by their origin ("catalogue: perf list"): replaces those of the same origin.
  expected<void> put_catalogue(const std::string& profiler, const std::string& origin, const std::vector<segment>& segments);

  expected<std::optional<summary>> get_summary(const std::string& segment, const std::string& by) const;
  /// One synced batch.
  expected<void> put_summaries(const std::vector<summary>& made);
  /// Removes summaries of segments that are no longer there. Returns how many.
  expected<int64_t> collect_garbage();

  /// Replaces all entries in one step where they differ; the generation counts up then. Returns the state afterwards.
  expected<compendium_state> put_entries(const std::vector<entry>& all, const std::string& summarised_by);
  expected<compendium_state> state() const;
  expected<std::optional<entry>> get_entry(const std::string& id) const;
  expected<void> each_entry(const std::function<expected<void>(const entry&)>& take) const;
  /// All ids, in order.
  expected<std::vector<std::string>> entry_ids() const;

  expected<void> verify() const;      ///< every checksum of RocksDB

private:
  struct impl;
  explicit knowledge_store(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
