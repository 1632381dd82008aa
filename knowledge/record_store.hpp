// RocksDB as both stores of this room use it (runs, compendium): named families of records, one writer, readers beside it, batches
// that are there as a whole or not at all, and errors that tell a person what to do. Inside this room only.
#pragma once

#include "base/error.hpp"
#include "knowledge/store_change.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class WriteBatch;
class ColumnFamilyHandle;
} // namespace rocksdb

namespace pragma {

struct record_store_options {
  std::string what;                   ///< "run store", "knowledge store"
  std::vector<std::string> families;  ///< besides "default", which holds the schema version
  int schema_version = 1;             ///< an older one is brought up to date by `migrate`, a newer one refused
  std::string made_by;                ///< "`pragma optimize TASK.py` makes one"
  std::string while_locked;           ///< what can be done while another process holds it
  std::string when_damaged;           ///< what is lost and what is not
  std::string after_failure;          ///< how to go on once a write failed
  size_t write_buffer_bytes = 4u << 20;
  bool opened_often = false;          ///< for each record: the journal is not made a table of at each opening, as there would be no time to merge those
};

class record_store {
public:
  enum class mode { read_write, read_only };

  class batch {
  public:
    void put(const std::string& family, const std::string& key, const std::string& value);
    void remove(const std::string& family, const std::string& key);
    /// All keys that start with `prefix` (which must not end in byte 255).
    void remove_prefix(const std::string& family, const std::string& prefix);

  private:
    friend class record_store;
    batch(rocksdb::WriteBatch& b, const record_store& s) : batch_(b), store_(s) {}
    rocksdb::WriteBatch& batch_;
    const record_store& store_;
    std::vector<store_change> changes_; ///< where somebody follows
  };

  /// locked: names the process that holds it; not_found: nothing to read there; io_error; parse_error: written by a newer pragma.
  static expected<record_store> open(const std::filesystem::path& folder, mode m, record_store_options options);
  record_store(record_store&&) noexcept;
  record_store& operator=(record_store&&) noexcept;
  ~record_store();

  /// `put` fills one batch: all of it is there afterwards, or nothing. Synced unless `sync` is false (a crash of the machine may then
  /// lose the latest batches, a crash of the process none). `doing` completes "cannot ...".
  expected<void> write(const std::string& doing, const std::function<void(batch&)>& put, bool sync = true);
  expected<std::optional<std::string>> get(const std::string& family, const std::string& key, const std::string& what) const;
  using take = std::function<expected<void>(std::string_view key, std::string_view value)>;
  /// Every record whose key starts with `prefix`, in order of key, and is not below `from`. An error of `f` ends it.
  expected<void> scan(const std::string& family, const std::string& prefix, const std::string& what, const take& f, const std::string& from = {}) const;
  /// From now on each batch is told to it, and a write returns when it has settled; null: no more. Not beside a write.
  void follow(std::shared_ptr<store_follower> who);
  /// Changes of another store of this kind. parse_error for what is none, or of a family that is not here.
  expected<void> apply(const std::vector<store_change>& changes);
  /// Reads every block, checksums verified. io_error names the damage.
  expected<void> verify() const;
  const std::filesystem::path& folder() const;

private:
  struct impl;
  explicit record_store(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

/// Creates the folder where there is none; owner-only, as the stores hold source, logs and questions of the user. io_error.
expected<void> make_store_folder(const std::filesystem::path& folder, const std::string& what);

} // namespace pragma
