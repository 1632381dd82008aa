// Runs in RocksDB: every iteration is durable before the next one starts. Records are JSON documents, so that the store
// knows nothing of what is in them. One writer process; readers (`pragma runs`, `show`) open read-only beside it.
#pragma once

#include "base/error.hpp"
#include "base/json.hpp"
#include "knowledge/store_change.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pragma {

class run_store {
public:
  enum class mode { read_write, read_only };
  /// What a list of runs shows of one, made from its header: an object with "started" (ISO time).
  using summariser = expected<json> (*)(const json& header);
  /// locked: names the process folder that holds it; io_error; parse_error when the schema version is newer than ours.
  static expected<run_store> open(const std::filesystem::path& folder, mode m, summariser summary_of);
  run_store(run_store&&) noexcept;
  run_store& operator=(run_store&&) noexcept;
  ~run_store();

  /// Creates or replaces the run's header (task, options, state). Synced.
  expected<void> put_run(const std::string& run_id, const json& header);
  expected<json> get_run(const std::string& run_id) const;           ///< not_found names the nearest ids
  /// Summaries of all runs, newest first. They lie under keys of their own: no header is read but of runs that were written before there were any.
  expected<std::vector<std::pair<std::string, json>>> list_runs() const;
  /// Writes iteration `number` together with the updated header in one synced batch.
  expected<void> put_iteration(const std::string& run_id, int number, const json& iteration, const json& header);
  expected<std::vector<json>> iterations(const std::string& run_id) const; ///< in order of number
  expected<void> remove_run(const std::string& run_id);
  /// Schedules that won, by family key, for a warm start of similar tasks.
  expected<void> put_schedule(const std::string& key, const json& value);
  expected<std::optional<json>> get_schedule(const std::string& key) const;

  /// What findings promised and brought, by machine (diagnosis/scores.hpp).
  expected<void> put_scores(const std::string& machine, const json& value);
  expected<std::vector<json>> all_scores() const;
  expected<std::optional<json>> get_scores(const std::string& machine) const;

  /// Texts of tasks, so that a run can be gone on with wherever its record is.
  expected<void> put_task(const std::string& key, const json& value);
  expected<std::optional<json>> get_task(const std::string& key) const;

  /// For a second store that is to be the same: see record_store. A copy begins with records_after({}) until that gives none, and goes on with each batch that
  /// was written since before it began.
  void follow(std::shared_ptr<store_follower> who);
  struct place {
    size_t family = 0;                    ///< in the order of copying
    std::string key;                      ///< the next one, or one below it
  };
  /// Some `most_bytes` of records from `from` on, which is moved behind them; none: that was all.
  expected<std::vector<store_change>> records_after(place& from, size_t most_bytes) const;
  expected<void> apply(const std::vector<store_change>& changes);

  /// Everything, as it was when this one was opened (a backup; a copy for another machine). Gives the number of runs.
  expected<uint64_t> copy_into(run_store& other) const;

private:
  struct impl;
  explicit run_store(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
