#include "knowledge/record_store.hpp"

#include "base/file_lock.hpp"
#include "base/text.hpp"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace {

constexpr const char* schema_key = "schema";
constexpr const char* default_family = "default";
constexpr size_t block_cache_bytes = 4u << 20;
constexpr size_t most_journals = 64; ///< then a table is made of them
constexpr int read_only_tries = 5; ///< the writer may delete a file between our reading its name and opening it

/// Swallows RocksDB's info log. A reader must not write into a folder that may not be its own; and on a full disk the second line that it
/// cannot write ends the process, where RocksDB was built with its assertions (Debian's is).
class silent_logger : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// Files of the journal. Each opening begins another, and the next one reads all of them.
size_t journals(const std::filesystem::path& folder) {
  std::error_code ignored;
  size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) found += entry.path().extension() == ".log";
  return found;
}

rocksdb::Options database_options(const record_store_options& words, const std::filesystem::path& folder) {
  const size_t write_buffer_bytes = words.write_buffer_bytes;
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
  options.avoid_flush_during_recovery = words.opened_often && journals(folder) < most_journals;
  options.max_background_jobs = 2;
  options.max_open_files = 64;
  options.info_log = std::make_shared<silent_logger>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.allow_fallocate = false; // a store of a few KB should not claim megabytes
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(block_cache_bytes);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
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
  return process_text(lock.l_pid);
}

error open_error(const rocksdb::Status& status, const std::filesystem::path& folder, const record_store_options& words) {
  const auto text = status.ToString();
  const auto store = "the " + words.what + " " + folder.string();
  if (status.IsIOError() && (text.find("lock file") != std::string::npos || text.find("lock hold by") != std::string::npos ||
                             text.find("LOCK") != std::string::npos)) {
    const bool ours = text.find("current process") != std::string::npos;
    const auto holder = ours ? std::string("this very process") : lock_holder(folder);
    if (ours || !holder.empty() || text.find("Resource temporarily unavailable") != std::string::npos)
      return {ec::locked, store + " is in use by " + (holder.empty() ? "another process" : holder), words.while_locked};
  }
  if (status.IsCorruption()) return {ec::io_error, store + " is damaged: " + text, words.when_damaged};
  return {ec::io_error, "cannot open " + store + ": " + text,
          "check that the folder may be written and that its disk has space, or choose another with --data DIR"};
}

} // namespace

struct record_store::impl {
  std::filesystem::path folder;
  record_store::mode opened;
  record_store_options words;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles; ///< all that exist, ours and those of a newer version
  bool broken = false; ///< a write failed; RocksDB refuses all further ones until it is opened anew
  std::mutex writing;  ///< batches are told in the order in which they were written
  std::shared_ptr<store_follower> follower;

  ~impl() { close(); }

  void close() {
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    handles.clear();
    if (db) db->Close();
    db.reset();
  }

  /// Null where a reader found an older store without it.
  rocksdb::ColumnFamilyHandle* family(const std::string& name) const {
    for (auto* handle : handles)
      if (handle->GetName() == name) return handle;
    return nullptr;
  }

  expected<void> open_database(record_store::mode m) {
    std::error_code ignored;
    const bool exists = std::filesystem::exists(folder / "CURRENT", ignored);
    auto options = database_options(words, folder);
    if (m == record_store::mode::read_only) options.create_if_missing = options.create_missing_column_families = false;
    rocksdb::Status status;
    for (int attempt = 0; attempt < (m == record_store::mode::read_only ? read_only_tries : 1); ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20 << attempt));
      // All families that exist must be named, also those of a newer version: it is refused later, by its schema.
      std::vector<std::string> names;
      if (exists) {
        status = rocksdb::DB::ListColumnFamilies(options, folder.string(), &names);
        if (!status.ok()) continue;
      }
      if (m == record_store::mode::read_write) {
        auto wanted = words.families;
        wanted.insert(wanted.begin(), default_family);
        for (const auto& name : wanted)
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
      std::vector<rocksdb::ColumnFamilyDescriptor> families;
      for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions(options));
      rocksdb::DB* opened_db = nullptr;
      status = m == record_store::mode::read_only
                   ? rocksdb::DB::OpenForReadOnly(options, folder.string(), families, &handles, &opened_db)
                   : rocksdb::DB::Open(options, folder.string(), families, &handles, &opened_db);
      if (!status.ok()) continue;
      db.reset(opened_db);
      return {};
    }
    return fail(open_error(status, folder, words));
  }

  expected<void> reopen() {
    close();
    auto again = open_database(record_store::mode::read_write);
    if (again) broken = false;
    else if (auto reading = open_database(record_store::mode::read_only); !reading) return reading; // what there is stays readable
    return again;
  }

  error access_error(const rocksdb::Status& status, const std::string& doing) const {
    std::error_code ignored;
    const auto space = std::filesystem::space(folder, ignored);
    std::string hint = "what was recorded before is kept";
    if (!ignored) hint += "; the disk has " + format_bytes(static_cast<double>(space.available)) + " left";
    return {ec::io_error, "cannot " + doing + " in the " + words.what + " " + folder.string() + ": " + status.ToString(),
            hint + ". " + words.after_failure};
  }

  /// Reads the schema version; a fresh store gets ours.
  expected<void> check_schema(record_store& self) {
    std::string text;
    const auto status = db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), schema_key, &text);
    if (status.IsNotFound()) {
      if (opened == record_store::mode::read_only) return {};
      return self.write("note the schema version",
                        [&](record_store::batch& b) { b.put(default_family, schema_key, std::to_string(words.schema_version)); });
    }
    if (!status.ok()) return fail(access_error(status, "read the schema version"));
    const bool number = !text.empty() && text.size() <= 9 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    const int version = number ? std::stoi(text) : 0;
    if (version < 1)
      return fail(ec::parse_error, "the " + words.what + " " + folder.string() + " has the schema version '" + printable(text) + "'",
                  "it was not written by pragma; choose another folder with --data DIR");
    if (version > words.schema_version)
      return fail(ec::parse_error, "the " + words.what + " " + folder.string() + " has schema version " + text + "; this pragma knows versions up to " + std::to_string(words.schema_version),
                  "use the newer pragma that wrote it, or another folder with --data DIR");
    return {};
  }
};

expected<void> make_store_folder(const std::filesystem::path& folder, const std::string& what) {
  std::error_code problem;
  if (std::filesystem::exists(folder, problem)) return {};
  std::filesystem::create_directories(folder, problem);
  if (problem)
    return fail(ec::io_error, "cannot create the " + what + "'s folder " + folder.string() + ": " + problem.message(),
                "choose another with --data DIR");
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, problem);
  return {};
}

void record_store::batch::put(const std::string& family, const std::string& key, const std::string& value) {
  batch_.Put(store_.impl_->family(family), key, value);
  if (store_.impl_->follower) changes_.push_back({"put", family, key, value});
}
void record_store::batch::remove(const std::string& family, const std::string& key) {
  batch_.Delete(store_.impl_->family(family), key);
  if (store_.impl_->follower) changes_.push_back({"remove", family, key, ""});
}
void record_store::batch::remove_prefix(const std::string& family, const std::string& prefix) {
  auto end = prefix;
  if (end.empty()) end = "\xff";
  else end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  batch_.DeleteRange(store_.impl_->family(family), prefix, end);
  if (store_.impl_->follower) changes_.push_back({"remove prefix", family, prefix, ""});
}

expected<record_store> record_store::open(const std::filesystem::path& folder, mode m, record_store_options options) {
  std::error_code ignored;
  if (m == mode::read_only && !std::filesystem::exists(folder / "CURRENT", ignored))
    return fail(ec::not_found, "there is no " + options.what + " in " + folder.string(), options.made_by);
  if (m == mode::read_write)
    if (auto made = make_store_folder(folder, options.what); !made) return fail(made.error());
  auto p = std::make_unique<impl>();
  p->folder = folder;
  p->opened = m;
  p->words = std::move(options);
  if (auto opened = p->open_database(m); !opened) return fail(opened.error());
  record_store store(std::move(p));
  if (auto known = store.impl_->check_schema(store); !known) return fail(known.error());
  return store;
}

record_store::record_store(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
record_store::record_store(record_store&&) noexcept = default;
record_store& record_store::operator=(record_store&&) noexcept = default;
record_store::~record_store() = default;

const std::filesystem::path& record_store::folder() const { return impl_->folder; }

expected<void> record_store::write(const std::string& doing, const std::function<void(batch&)>& put, bool sync) {
  auto& p = *impl_;
  if (p.opened == mode::read_only)
    return fail(ec::internal, "cannot " + doing + ": the " + p.words.what + " " + p.folder.string() + " was opened for reading only");
  std::unique_lock lock(p.writing);
  if (p.broken)
    if (auto again = p.reopen(); !again) return again;
  rocksdb::WriteBatch records;
  batch b(records, *this);
  put(b);
  rocksdb::WriteOptions options;
  options.sync = sync;
  const auto status = p.db->Write(options, &records);
  if (!status.ok()) {
    p.broken = true;
    return fail(p.access_error(status, doing));
  }
  if (const auto follower = p.follower) {
    const auto number = follower->wrote(b.changes_);
    lock.unlock();
    follower->settle(number);
  }
  return {};
}

void record_store::follow(std::shared_ptr<store_follower> who) {
  const std::lock_guard lock(impl_->writing);
  impl_->follower = std::move(who);
}

expected<void> record_store::apply(const std::vector<store_change>& changes) {
  for (const auto& c : changes)
    if ((c.how != "put" && c.how != "remove" && c.how != "remove prefix") || c.family == default_family || !impl_->family(c.family))
      return fail(ec::parse_error, "a change '" + printable(c.how.substr(0, 40)) + "' of '" + printable(c.family.substr(0, 40)) + "' is none of the " + impl_->words.what, "install the same version on both machines");
  return write("apply changes", [&](batch& b) {
    for (const auto& c : changes) {
      if (c.how == "put") b.put(c.family, c.key, c.value);
      else if (c.how == "remove") b.remove(c.family, c.key);
      else b.remove_prefix(c.family, c.key);
    }
  });
}

expected<std::optional<std::string>> record_store::get(const std::string& family, const std::string& key, const std::string& what) const {
  auto* handle = impl_->family(family);
  if (!handle) return std::optional<std::string>{};
  std::string text;
  const auto status = impl_->db->Get(rocksdb::ReadOptions(), handle, key, &text);
  if (status.IsNotFound()) return std::optional<std::string>{};
  if (!status.ok()) return fail(impl_->access_error(status, "read " + what));
  return std::optional<std::string>(std::move(text));
}

expected<void> record_store::scan(const std::string& family, const std::string& prefix, const std::string& what, const take& f, const std::string& from) const {
  auto* handle = impl_->family(family);
  if (!handle) return {};
  std::unique_ptr<rocksdb::Iterator> it(impl_->db->NewIterator(rocksdb::ReadOptions(), handle));
  for (it->Seek(std::max(prefix, from)); it->Valid() && it->key().starts_with(prefix); it->Next())
    if (auto taken = f({it->key().data(), it->key().size()}, {it->value().data(), it->value().size()}); !taken) return taken;
  if (!it->status().ok()) return fail(impl_->access_error(it->status(), "read " + what));
  return {};
}

expected<void> record_store::verify() const {
  const auto status = impl_->db->VerifyChecksum();
  if (!status.ok()) return fail(impl_->access_error(status, "verify the checksums"));
  return {};
}

} // namespace pragma
