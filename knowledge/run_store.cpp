#include "knowledge/run_store.hpp"

#include "base/text.hpp"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace {

constexpr int schema_version = 1;
constexpr const char* schema_key = "schema";
constexpr size_t write_buffer_bytes = 4u << 20; ///< an iteration is some 100 KB; a run fits into one buffer
constexpr size_t block_cache_bytes = 4u << 20;
constexpr size_t max_id_bytes = 200;
constexpr int read_only_tries = 5;              ///< the writer may delete a file between our reading its name and opening it

// Column families; the default one (index 0) holds the schema version.
enum family : size_t { meta, runs, iterations_, schedules, family_count };
constexpr std::array<const char*, family_count> family_names = {"default", "runs", "iterations", "schedules"};

rocksdb::Options store_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // The default (point in time) silently drops everything behind a damaged byte. This one forgives only what a crash leaves:
  // a last record that is cut short. Damage elsewhere fails the open, and we say so.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.paranoid_checks = true;
  options.write_buffer_size = write_buffer_bytes;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 * write_buffer_bytes;
  options.max_background_jobs = 2;
  options.max_open_files = 64;
  options.keep_log_file_num = 2;
  options.max_log_file_size = 1u << 20;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.allow_fallocate = false; // a store of a few KB should not claim megabytes
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(block_cache_bytes);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

/// Swallows RocksDB's info log: a reader must not write into a folder that may not be its own.
class silent_logger : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

std::string iteration_key(const std::string& run_id, int number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%010d", number);
  return run_id + '\0' + digits;
}

std::string encode(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace); // logs may hold bytes that are not UTF-8
}

/// Who holds the lock file, for the message. Only to be called when another process has it: closing any descriptor of a
/// file drops the locks that this process itself holds on it.
std::string lock_holder(const std::filesystem::path& folder) {
  const int fd = ::open((folder / "LOCK").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {};
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
  ::close(fd);
  if (!known) return {};
  std::ifstream in("/proc/" + std::to_string(lock.l_pid) + "/comm");
  std::string program;
  std::getline(in, program);
  return "process " + std::to_string(lock.l_pid) + (program.empty() ? "" : " (" + printable(program) + ")");
}

error open_error(const rocksdb::Status& status, const std::filesystem::path& folder) {
  const auto text = status.ToString();
  if (status.IsIOError() && (text.find("lock file") != std::string::npos || text.find("lock hold by") != std::string::npos ||
                             text.find("LOCK") != std::string::npos)) {
    const bool ours = text.find("current process") != std::string::npos;
    const auto holder = ours ? std::string("this very process") : lock_holder(folder);
    if (ours || !holder.empty() || text.find("Resource temporarily unavailable") != std::string::npos)
      return {ec::locked, "the run store " + folder.string() + " is in use by " + (holder.empty() ? "another process" : holder),
              "wait until it has finished, stop it, or keep this run elsewhere with PRAGMA_HOME=DIR; `pragma runs` and "
              "`pragma show` work meanwhile"};
  }
  if (status.IsCorruption())
    return {ec::io_error, "the run store " + folder.string() + " is damaged: " + text,
            "nothing was changed. Copy the folder, then restore it from a backup, or move it away to start an empty store; "
            "reports in the runs' output folders do not depend on it"};
  return {ec::io_error, "cannot open the run store " + folder.string() + ": " + text,
          "check that the folder may be written and that its disk has space, or choose another with PRAGMA_HOME=DIR"};
}

error access_error(const rocksdb::Status& status, const std::filesystem::path& folder, const std::string& what) {
  std::error_code ignored;
  const auto space = std::filesystem::space(folder, ignored);
  std::string hint = "what was recorded before is kept";
  if (!ignored) hint += "; the disk has " + format_bytes(static_cast<double>(space.available)) + " left";
  return {ec::io_error, "cannot " + what + " in the run store " + folder.string() + ": " + status.ToString(),
          hint + ". Free space or mend the disk, then go on with `pragma resume`"};
}

} // namespace

struct run_store::impl {
  std::filesystem::path folder;
  run_store::mode opened;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;           ///< all that exist, ours and those of a newer version
  std::array<rocksdb::ColumnFamilyHandle*, family_count> own{}; ///< null where a reader found an older store

  bool broken = false; ///< a write failed; RocksDB refuses all further ones until it is opened anew

  ~impl() { close(); }

  void close() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    handles.clear();
    own = {};
    if (db) db->Close();
    db.reset();
  }

  expected<void> open_database(run_store::mode m) {
    std::error_code ignored;
    const bool exists = std::filesystem::exists(folder / "CURRENT", ignored);
    auto options = store_options();
    if (m == run_store::mode::read_only) {
      options.info_log = std::make_shared<silent_logger>();
      options.create_if_missing = options.create_missing_column_families = false;
    }
    rocksdb::Status status;
    for (int attempt = 0; attempt < (m == run_store::mode::read_only ? read_only_tries : 1); ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20 << attempt));
      // All families that exist must be named, also those of a newer version: it is refused later, by its schema.
      std::vector<std::string> names;
      if (exists) {
        status = rocksdb::DB::ListColumnFamilies(options, folder.string(), &names);
        if (!status.ok()) continue;
      }
      if (m == run_store::mode::read_write)
        for (const auto* name : family_names)
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      std::vector<rocksdb::ColumnFamilyDescriptor> families;
      for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions(options));
      rocksdb::DB* opened_db = nullptr;
      status = m == run_store::mode::read_only
                   ? rocksdb::DB::OpenForReadOnly(options, folder.string(), families, &handles, &opened_db)
                   : rocksdb::DB::Open(options, folder.string(), families, &handles, &opened_db);
      if (!status.ok()) continue;
      db.reset(opened_db);
      for (size_t i = 0; i < names.size(); ++i)
        for (size_t f = 0; f < family_count; ++f)
          if (names[i] == family_names[f]) own[f] = handles[i];
      return {};
    }
    return fail(open_error(status, folder));
  }

  expected<void> reopen() {
    close();
    auto again = open_database(run_store::mode::read_write);
    if (again) broken = false;
    else if (auto reading = open_database(run_store::mode::read_only); !reading) return reading; // what there is stays readable
    return again;
  }

  /// `put` puts the records into one batch, which is synced: all of it is there afterwards, or nothing.
  template <class Put> expected<void> write(const std::string& what, Put put) {
    if (opened == run_store::mode::read_only)
      return fail(ec::internal, "cannot " + what + ": the run store " + folder.string() + " was opened for reading only");
    if (broken)
      if (auto again = reopen(); !again) return again;
    rocksdb::WriteBatch batch;
    put(batch);
    rocksdb::WriteOptions options;
    options.sync = true;
    const auto status = db->Write(options, &batch);
    if (status.ok()) return {};
    broken = true;
    return fail(access_error(status, folder, what));
  }

  expected<std::optional<json>> get(family where, const std::string& key, const std::string& what) const {
    if (!own[where]) return std::optional<json>{};
    std::string text;
    const auto status = db->Get(rocksdb::ReadOptions(), own[where], key, &text);
    if (status.IsNotFound()) return std::optional<json>{};
    if (!status.ok()) return fail(access_error(status, folder, "read " + what));
    auto value = parse_json(text, what + " in the run store");
    if (!value) return fail(value.error());
    return std::optional<json>(std::move(*value));
  }

  /// Calls `take(key, value)` for every record whose key starts with `prefix`, in order of key.
  template <class Take>
  expected<void> scan(family where, const std::string& prefix, const std::string& what, Take take) const {
    if (!own[where]) return {};
    std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), own[where]));
    for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
      expected<void> taken = take(it->key().ToString(), std::string_view(it->value().data(), it->value().size()));
      if (!taken) return taken;
    }
    if (!it->status().ok()) return fail(access_error(it->status(), folder, "read " + what));
    return {};
  }

  expected<void> no_such_run(const std::string& run_id) const {
    std::vector<std::string> ids;
    auto read = scan(runs, "", "the runs", [&](std::string key, std::string_view) -> expected<void> {
      ids.push_back(std::move(key));
      return {};
    });
    if (!read) return read;
    auto near = nearest_names(run_id, ids);
    if (near.empty()) near.assign(ids.rbegin(), ids.rbegin() + static_cast<long>(std::min<size_t>(ids.size(), 3)));
    return fail(ec::not_found, "no run " + printable(run_id) + " in the run store " + folder.string(),
                ids.empty() ? "it holds no runs yet; `pragma optimize TASK.py` makes one"
                            : "nearest: " + join(near, ", ") + ". `pragma runs` lists all " + std::to_string(ids.size()));
  }

  /// Reads the schema version; a fresh store gets ours.
  expected<void> check_schema() {
    std::string text;
    const auto status = db->Get(rocksdb::ReadOptions(), own[meta], schema_key, &text);
    if (status.IsNotFound()) {
      if (opened == run_store::mode::read_only) return {};
      return write("note the schema version", [&](rocksdb::WriteBatch& batch) {
        batch.Put(own[meta], schema_key, std::to_string(schema_version));
      });
    }
    if (!status.ok()) return fail(access_error(status, folder, "read the schema version"));
    const int version = text.empty() || text.size() > 9 || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })
                            ? 0 : std::stoi(text);
    if (version < 1)
      return fail(ec::parse_error, "the run store " + folder.string() + " has the schema version '" + printable(text) + "'",
                  "it was not written by pragma; choose another folder with PRAGMA_HOME=DIR");
    if (version > schema_version)
      return fail(ec::parse_error, "the run store " + folder.string() + " has schema version " + text + "; this pragma knows versions up to " + std::to_string(schema_version),
                  "use the newer pragma that wrote it, or another folder with PRAGMA_HOME=DIR");
    return {};
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

/// Creates the folder; owner-only, as runs hold source and logs of the user.
expected<void> make_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  if (std::filesystem::exists(folder, problem)) return {};
  std::filesystem::create_directories(folder, problem);
  if (problem)
    return fail(ec::io_error, "cannot create the run store's folder " + folder.string() + ": " + problem.message(),
                "choose another with PRAGMA_HOME=DIR");
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, problem);
  return {};
}

} // namespace

expected<run_store> run_store::open(const std::filesystem::path& folder, mode m) {
  std::error_code ignored;
  if (m == mode::read_only && !std::filesystem::exists(folder / "CURRENT", ignored))
    return fail(ec::not_found, "there is no run store in " + folder.string(), "`pragma optimize TASK.py` makes one");
  if (m == mode::read_write)
    if (auto made = make_folder(folder); !made) return fail(made.error());

  auto p = std::make_unique<impl>();
  p->folder = folder;
  p->opened = m;
  if (auto opened = p->open_database(m); !opened) return fail(opened.error());
  if (auto known = p->check_schema(); !known) return fail(known.error());
  return run_store(std::move(p));
}

run_store::run_store(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
run_store::run_store(run_store&&) noexcept = default;
run_store& run_store::operator=(run_store&&) noexcept = default;
run_store::~run_store() = default;

expected<void> run_store::put_run(const std::string& run_id, const json& header) {
  if (auto good = check_id(run_id, "run id"); !good) return good;
  return impl_->write("record run " + run_id, [&](rocksdb::WriteBatch& batch) {
    batch.Put(impl_->own[runs], run_id, encode(header));
  });
}

expected<json> run_store::get_run(const std::string& run_id) const {
  auto found = impl_->get(runs, run_id, "run " + printable(run_id));
  if (!found) return fail(found.error());
  if (!*found) return fail(impl_->no_such_run(run_id).error());
  return std::move(**found);
}

expected<std::vector<std::pair<std::string, json>>> run_store::list_runs() const {
  std::vector<std::pair<std::string, json>> all;
  auto read = impl_->scan(runs, "", "the runs", [&](std::string key, std::string_view value) -> expected<void> {
    auto header = parse_json(value, "run " + key + " in the run store");
    if (!header) return fail(header.error());
    all.emplace_back(std::move(key), std::move(*header));
    return {};
  });
  if (!read) return fail(read.error());
  const auto started = [](const json& header) {
    const auto it = header.is_object() ? header.find("started") : header.end();
    return it != header.end() && it->is_string() ? it->get<std::string>() : std::string();
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
  return impl_->write("record iteration " + std::to_string(number) + " of run " + run_id, [&](rocksdb::WriteBatch& batch) {
    batch.Put(impl_->own[iterations_], iteration_key(run_id, number), encode(iteration));
    batch.Put(impl_->own[runs], run_id, encode(header));
  });
}

expected<std::vector<json>> run_store::iterations(const std::string& run_id) const {
  std::vector<json> all;
  auto read = impl_->scan(iterations_, run_id + '\0', "run " + printable(run_id), [&](std::string, std::string_view value) -> expected<void> {
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
  return impl_->write("remove run " + run_id, [&](rocksdb::WriteBatch& batch) {
    batch.Delete(impl_->own[runs], run_id);
    batch.DeleteRange(impl_->own[iterations_], run_id + '\0', run_id + '\1');
  });
}

expected<void> run_store::put_schedule(const std::string& key, const json& value) {
  if (auto good = check_id(key, "schedule's key"); !good) return good;
  return impl_->write("record a schedule", [&](rocksdb::WriteBatch& batch) { batch.Put(impl_->own[schedules], key, encode(value)); });
}

expected<std::optional<json>> run_store::get_schedule(const std::string& key) const {
  return impl_->get(schedules, key, "schedule " + printable(key));
}

} // namespace pragma
