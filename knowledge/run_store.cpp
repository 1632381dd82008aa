#include "knowledge/run_store.hpp"

#include "base/text.hpp"
#include "knowledge/record_store.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>

namespace pragma {

namespace {

constexpr int schema_version = 1;
constexpr size_t max_id_bytes = 200;
const std::string runs = "runs", summaries = "summaries", iterations_ = "iterations", schedules = "schedules", tasks = "tasks", scores = "scores";
/// Headers last: a run that is there is whole.
const std::vector<std::string>& copied_families() {
  static const std::vector<std::string> all{tasks, scores, iterations_, schedules, summaries, runs};
  return all;
}

record_store_options store_options() {
  record_store_options o;
  o.what = "run store";
  o.families = {runs, summaries, iterations_, schedules, tasks, scores};
  o.schema_version = schema_version;
  o.opened_often = true;
  o.made_by = "`pragma optimize TASK.py` makes one";
  o.while_locked = "wait until it has finished, stop it, or keep this run elsewhere with --data DIR; `pragma runs` and "
                   "`pragma show` work meanwhile";
  o.when_damaged = "nothing was changed. Copy the folder, then restore it from a backup, or move it away to start an empty store; "
                   "reports in the runs' output folders do not depend on it";
  o.after_failure = "Free space or mend the disk, then go on with `pragma resume`";
  return o;
}

std::string iteration_key(const std::string& run_id, int number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%010d", number);
  return run_id + '\0' + digits;
}

std::string encode(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace); // logs may hold bytes that are not UTF-8
}

} // namespace

struct run_store::impl {
  std::filesystem::path folder;
  std::optional<file_lock> turn; ///< outlives the records: they are closed before others may come
  record_store records;
  summariser summary_of;

  void put_header(record_store::batch& batch, const std::string& run_id, const json& header) const {
    batch.put(runs, run_id, encode(header));
    if (auto summary = summary_of(header)) batch.put(summaries, run_id, encode(*summary));
    else batch.remove(summaries, run_id);
  }

  expected<std::optional<json>> get(const std::string& family, const std::string& key, const std::string& what) const {
    auto text = records.get(family, key, what);
    if (!text) return fail(text.error());
    if (!*text) return std::optional<json>{};
    auto value = parse_json(**text, what + " in the run store");
    if (!value) return fail(value.error());
    return std::optional<json>(std::move(*value));
  }

  expected<void> no_such_run(const std::string& run_id) const {
    std::vector<std::string> ids;
    auto read = records.scan(runs, "", "the runs", [&](std::string_view key, std::string_view) -> expected<void> {
      ids.emplace_back(key);
      return {};
    });
    if (!read) return read;
    auto near = nearest_names(run_id, ids);
    if (near.empty()) near.assign(ids.rbegin(), ids.rbegin() + static_cast<long>(std::min<size_t>(ids.size(), 3)));
    return fail(ec::not_found, "no run " + printable(run_id) + " in the run store " + records.folder().string(),
                ids.empty() ? "it holds no runs yet; `pragma optimize TASK.py` makes one"
                            : "nearest: " + join(near, ", ") + ". `pragma runs` lists all " + std::to_string(ids.size()));
  }
};

namespace {

expected<void> check_id(const std::string& id, const char* what) {
  const bool good = !id.empty() && id.size() <= max_id_bytes &&
                    std::none_of(id.begin(), id.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (good) return {};
  return fail(ec::invalid_argument, std::string("'") + printable(id.substr(0, 40)) + "' cannot be a " + what,
              "it must have 1 to " + std::to_string(max_id_bytes) + " bytes and no control characters");
}

} // namespace

namespace {

/// Who opens the store, and who writes in turn, holds this file. RocksDB's own lock does not wait, and a reader that meets a store being opened may find
/// the journal gone and the table made of it not there yet.
constexpr const char* turn_file = "TURN";
constexpr const char* claims_folder = "claims";
constexpr auto writers_patience = std::chrono::seconds(60); ///< a turn takes some 0.1 s: a longer one is of a process that was stopped
constexpr auto claims_patience = std::chrono::milliseconds(100); ///< somebody may be looking whether it is held
constexpr auto readers_patience = std::chrono::seconds(10); ///< then it reads all the same

/// Nothing where a reader has nothing to wait for, or may not.
expected<std::optional<file_lock>> take_turn(const std::filesystem::path& folder, run_store::mode m) {
  if (m != run_store::mode::read_only) {
    if (auto made = make_store_folder(folder, "run store"); !made) return fail(made.error());
    auto taken = file_lock::take(folder / turn_file, file_lock::kind::exclusive, writers_patience);
    if (!taken && taken.error().code == ec::locked)
      return fail(ec::locked, "the run store " + folder.string() + " is being written for longer than " + std::to_string(writers_patience.count()) + " s: " + taken.error().message,
                  "where that process was stopped (Ctrl-Z), let it go on or end it; then go on with `pragma resume`");
    if (!taken) return fail(taken.error());
    return std::optional<file_lock>(std::move(*taken));
  }
  std::error_code ignored;
  if (!std::filesystem::exists(folder / turn_file, ignored)) return std::optional<file_lock>{};
  auto taken = file_lock::take(folder / turn_file, file_lock::kind::shared, readers_patience);
  return taken ? std::optional<file_lock>(std::move(*taken)) : std::nullopt;
}

/// Removes the claims of processes that are gone.
expected<void> nobody_claims(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::vector<std::filesystem::path> claims;
  for (const auto& one : std::filesystem::directory_iterator(folder / claims_folder, ignored)) claims.push_back(one.path());
  for (const auto& file : claims) {
    auto free = file_lock::take(file, file_lock::kind::exclusive);
    if (!free) return fail(ec::locked, "the run store " + folder.string() + " is in use: run " + free.error().message, "wait until it has finished, stop it, or use another folder with --data DIR");
    free->remove();
  }
  return {};
}

} // namespace

expected<run_store> run_store::open(const std::filesystem::path& folder, mode m, summariser summary_of) {
  auto turn = take_turn(folder, m);
  if (!turn) return fail(turn.error());
  auto records = record_store::open(folder, m == mode::read_only ? record_store::mode::read_only : record_store::mode::read_write, store_options());
  if (!records) return fail(records.error());
  if (m == mode::read_write) {
    if (auto free = nobody_claims(folder); !free) return fail(free.error());
    turn->reset(); // from here on RocksDB's own lock keeps others away
  }
  return run_store(std::make_unique<impl>(impl{folder, std::move(*turn), std::move(*records), summary_of}));
}

expected<file_lock> run_store::claim(const std::filesystem::path& folder, const std::string& run_id) {
  if (auto good = check_id(run_id, "run id"); !good) return fail(good.error());
  if (run_id.front() == '.' || run_id.find('/') != std::string::npos) return fail(ec::invalid_argument, "'" + printable(run_id) + "' cannot be a run id", "it must be no path");
  std::error_code problem;
  std::filesystem::create_directories(folder / claims_folder, problem);
  if (problem) return fail(ec::io_error, "cannot make " + (folder / claims_folder).string() + ": " + problem.message(), "choose another folder with --data DIR");
  auto taken = file_lock::take(folder / claims_folder / run_id, file_lock::kind::exclusive, claims_patience);
  if (!taken && taken.error().code == ec::locked)
    return fail(ec::locked, "another process is at work on this run: " + taken.error().message, "wait until it has finished, or stop it");
  return taken;
}

bool run_store::abandoned(const std::string& run_id) const { return file_lock::left_behind(impl_->folder / claims_folder / run_id); }

run_store::run_store(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
run_store::run_store(run_store&&) noexcept = default;
run_store& run_store::operator=(run_store&&) noexcept = default;
run_store::~run_store() = default;

expected<void> run_store::put_run(const std::string& run_id, const json& header) {
  if (auto good = check_id(run_id, "run id"); !good) return good;
  return impl_->records.write("record run " + run_id, [&](record_store::batch& batch) { impl_->put_header(batch, run_id, header); });
}

expected<json> run_store::get_run(const std::string& run_id) const {
  auto found = impl_->get(runs, run_id, "run " + printable(run_id));
  if (!found) return fail(found.error());
  if (!*found) return fail(impl_->no_such_run(run_id).error());
  return std::move(**found);
}

expected<std::vector<std::pair<std::string, json>>> run_store::list_runs() const {
  std::map<std::string, json, std::less<>> known;
  auto read = impl_->records.scan(summaries, "", "the runs", [&](std::string_view key, std::string_view value) -> expected<void> {
    auto summary = parse_json(value, "the summary of run " + std::string(key) + " in the run store");
    if (!summary) return fail(summary.error());
    known.emplace(key, std::move(*summary));
    return {};
  });
  if (!read) return fail(read.error());
  std::vector<std::pair<std::string, json>> all;
  read = impl_->records.scan(runs, "", "the runs", [&](std::string_view key, std::string_view value) -> expected<void> {
    if (auto summary = known.find(key); summary != known.end()) {
      all.emplace_back(std::string(key), std::move(summary->second));
      return {};
    }
    auto header = parse_json(value, "run " + std::string(key) + " in the run store");
    if (!header) return fail(header.error());
    auto summary = impl_->summary_of(*header);
    if (!summary) return fail(summary.error());
    all.emplace_back(std::string(key), std::move(*summary));
    return {};
  });
  if (!read) return fail(read.error());
  const auto started = [](const json& summary) {
    const auto it = summary.is_object() ? summary.find("started") : summary.end();
    return it != summary.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    const auto when_a = started(a.second), when_b = started(b.second);
    return when_a != when_b ? when_a > when_b : a.first > b.first;
  });
  return all;
}

expected<void> run_store::put_iteration(const std::string& run_id, int number, const json& iteration, const json& header) {
  if (auto good = check_id(run_id, "run id"); !good) return good;
  if (number < 1) return fail(ec::invalid_argument, "iterations are numbered from 1, not " + std::to_string(number));
  return impl_->records.write("record iteration " + std::to_string(number) + " of run " + run_id, [&](record_store::batch& batch) {
    batch.put(iterations_, iteration_key(run_id, number), encode(iteration));
    impl_->put_header(batch, run_id, header);
  });
}

expected<std::vector<json>> run_store::iterations(const std::string& run_id) const {
  std::vector<json> all;
  auto read = impl_->records.scan(iterations_, run_id + '\0', "run " + printable(run_id), [&](std::string_view, std::string_view value) -> expected<void> {
    auto record = parse_json(value, "an iteration of run " + run_id + " in the run store");
    if (!record) return fail(record.error());
    all.push_back(std::move(*record));
    return {};
  });
  if (!read) return fail(read.error());
  if (all.empty())
    if (auto header = get_run(run_id); !header) return fail(header.error());
  return all;
}

expected<void> run_store::remove_run(const std::string& run_id) {
  if (auto header = get_run(run_id); !header) return fail(header.error());
  return impl_->records.write("remove run " + run_id, [&](record_store::batch& batch) {
    batch.remove(runs, run_id);
    batch.remove(summaries, run_id);
    batch.remove_prefix(iterations_, run_id + '\0');
  });
}

expected<void> run_store::put_schedule(const std::string& key, const json& value) {
  if (auto good = check_id(key, "schedule's key"); !good) return good;
  return impl_->records.write("record a schedule", [&](record_store::batch& batch) { batch.put(schedules, key, encode(value)); });
}

expected<std::optional<json>> run_store::get_schedule(const std::string& key) const {
  return impl_->get(schedules, key, "schedule " + printable(key));
}

expected<void> run_store::put_scores(const std::string& machine, const json& value) {
  if (auto good = check_id(machine, "machine's name"); !good) return good;
  return impl_->records.write("record scores", [&](record_store::batch& batch) { batch.put(scores, machine, encode(value)); });
}

expected<std::optional<json>> run_store::get_scores(const std::string& machine) const { return impl_->get(scores, machine, "scores of " + printable(machine)); }

expected<std::vector<json>> run_store::all_scores() const {
  std::vector<json> all;
  auto read = impl_->records.scan(scores, "", "the scores", [&](std::string_view key, std::string_view value) -> expected<void> {
    auto one = parse_json(value, "the scores of " + std::string(key) + " in the run store");
    if (!one) return fail(one.error());
    all.push_back(std::move(*one));
    return {};
  });
  if (!read) return fail(read.error());
  return all;
}

expected<void> run_store::put_task(const std::string& key, const json& value) {
  if (auto good = check_id(key, "task's key"); !good) return good;
  return impl_->records.write("record a task", [&](record_store::batch& batch) { batch.put(tasks, key, encode(value)); });
}

expected<std::optional<json>> run_store::get_task(const std::string& key) const { return impl_->get(tasks, key, "task " + printable(key)); }

void run_store::follow(std::shared_ptr<store_follower> who) { impl_->records.follow(std::move(who)); }
expected<void> run_store::apply(const std::vector<store_change>& changes) { return impl_->records.apply(changes); }

expected<std::vector<store_change>> run_store::records_after(place& from, size_t most_bytes) const {
  std::vector<store_change> taken;
  size_t bytes = 0;
  bool enough = false;
  for (const auto& all = copied_families(); taken.empty() && from.family < all.size();) {
    const auto& family = all[from.family];
    auto read = impl_->records.scan(family, "", "the " + family, [&](std::string_view key, std::string_view value) -> expected<void> {
      if ((enough = bytes > 0 && bytes + value.size() > most_bytes)) return fail(ec::limit_exceeded, "enough for once");
      taken.push_back({"put", family, std::string(key), std::string(value)});
      bytes += key.size() + value.size() + 1;
      from.key = std::string(key) + '\0';
      return {};
    }, from.key);
    if (read) from = {from.family + 1, ""};
    else if (!enough) return fail(read.error());
  }
  return taken;
}

expected<uint64_t> run_store::copy_into(run_store& other) const {
  uint64_t copied = 0;
  for (const auto& family : copied_families()) {
    auto read = impl_->records.scan(family, "", "the " + family, [&](std::string_view key, std::string_view value) -> expected<void> {
      if (family == runs) ++copied;
      return other.impl_->records.write("copy a record", [&](record_store::batch& batch) { batch.put(family, std::string(key), std::string(value)); });
    });
    if (!read) return fail(read.error());
  }
  return copied;
}

} // namespace pragma
