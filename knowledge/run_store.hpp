// Runs in RocksDB: every iteration is durable before the next one starts. Records are JSON documents, so that the store
// knows nothing of what is in them. Runs of several processes take turns at writing, a head keeps the store for itself; readers (`pragma runs`,
// `show`) open read-only beside either. decisions/0043.
#pragma once

#include "base/error.hpp"
#include "base/file_lock.hpp"
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
  enum class mode {
    read_write, ///< for this process alone, until it is closed; locked while some process claims a run
    in_turn,    ///< to read and write for a moment: waits until others that do so have closed it, and they wait for us
    read_only
  };
  /// What a list of runs shows of one, made from its header: an object with "started" (ISO time).
  using summariser = expected<json> (*)(const json& header);
  /// locked: names the process that holds it; io_error; parse_error when the schema version is newer than ours.
  static expected<run_store> open(const std::filesystem::path& folder, mode m, summariser summary_of);
  /// Says that this process is at work on the run (it runs it, or removes it), until the claim is removed or the process is gone. locked: names
  /// the process that is. The store's folder must be there.
  static expected<file_lock> claim(const std::filesystem::path& folder, const std::string& run_id);
  /// A process said that it was at work on the run, and is gone without having ended it (kill -9, a machine that was switched off).
  bool abandoned(const std::string& run_id) const;
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
