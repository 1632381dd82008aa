// Reading, atomic writing, temporary folders and the per-user folders (XDG). Used by everybody.
#pragma once

#include "base/error.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace pragma {

/// Whole file; not_found / io_error name the path; limit_exceeded above `max_bytes`.
expected<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes = 64u << 20);
/// Writes to a neighbour and renames, so that readers see the old or the new content, never half. fsyncs.
expected<void> write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// A folder under $TMPDIR that is removed with its content when this goes out of scope.
class temp_dir {
public:
  /// mode: permissions of the folder (0700; 0711 where a child with another uid must pass through).
  static expected<temp_dir> create(std::string_view prefix, unsigned mode = 0700);
  temp_dir(temp_dir&& other) noexcept;
  temp_dir& operator=(temp_dir&& other) noexcept;
  ~temp_dir();
  const std::filesystem::path& path() const { return path_; }

private:
  temp_dir() = default;
  std::filesystem::path path_;
};

/// $PRAGMA_HOME, else $XDG_DATA_HOME/pragma, else ~/.local/share/pragma. Holds the RocksDB stores and run folders.
std::filesystem::path data_home();
/// $PRAGMA_HOME/cache, else $XDG_CACHE_HOME/pragma, else ~/.cache/pragma. Holds the measured roofline and built binaries.
std::filesystem::path cache_home();
/// Where our own shipped files lie (kernels/python, configs, the runner's sources): $PRAGMA_SHARE, else beside the
/// executable (../share/pragma), else the source tree that this binary was built from.
std::filesystem::path share_dir();

} // namespace pragma
