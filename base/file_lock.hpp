// A file that one holder locks, or several share; the kernel lets go of it when their process is gone, however it ended. flock(), so that two
// openings within one process are two holders. Used by the run store.
#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

namespace pragma {

class file_lock {
public:
  enum class kind { shared, exclusive };
  /// Makes the file where there is none, for its owner only; its folder must be there. Waits for `patience`, 10 ms between tries. locked: somebody
  /// else holds it; the message says who (as process_text) in `file`'s name. io_error: it cannot be made or locked.
  static expected<file_lock> take(const std::filesystem::path& file, kind how, std::chrono::milliseconds patience = {});
  /// For turns that one had better go without than wait for somebody who was stopped (Ctrl-Z) for ever. Nothing when `patience` is over, `*cancel` is true, or there
  /// are no locks here. `in_vain` is true from when patience was over until somebody has had the file again: meanwhile nobody else waits.
  static std::optional<file_lock> take_or_go_on(const std::filesystem::path& file, kind how, std::chrono::milliseconds patience, const std::atomic<bool>* cancel, std::atomic<bool>& in_vain);
  /// The file is there and nobody holds it: its holder's process is gone and did not remove it.
  static bool left_behind(const std::filesystem::path& file);
  file_lock(file_lock&&) noexcept = default;
  file_lock& operator=(file_lock&& other) noexcept;
  ~file_lock() { let_go(); }
  /// Removes the file and lets go: who opened it before and waits notices, and makes another.
  void remove();

private:
  void let_go();
  file_lock(unique_fd fd, std::filesystem::path file) : fd_(std::move(fd)), file_(std::move(file)) {}
  unique_fd fd_;
  std::filesystem::path file_;
};

/// "process 4711 (pragma)"; without the name where there is no such process.
std::string process_text(pid_t pid);

} // namespace pragma
