#include "base/file_lock.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto pause = std::chrono::milliseconds(10);
constexpr auto look_at_cancel = std::chrono::milliseconds(100);

/// Who holds the file, by Linux's own list: "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF", with an arrow where somebody only waits.
std::string holder_of(ino_t inode) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, file;
    pid_t pid = 0;
    words >> number >> kind >> advisory >> access >> pid >> file;
    if (kind == "FLOCK" && pid > 0 && file.ends_with(":" + std::to_string(inode))) return process_text(pid);
  }
  return "another process";
}

error problem_with(const char* what, const std::filesystem::path& file) {
  return {ec::io_error, std::string("cannot ") + what + " " + file.string() + ": " + std::strerror(errno), "choose a folder that can be written with --data DIR"};
}

} // namespace

std::string process_text(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
  std::string program;
  std::getline(in, program);
  return "process " + std::to_string(pid) + (program.empty() ? "" : " (" + printable(program) + ")");
}

expected<file_lock> file_lock::take(const std::filesystem::path& file, kind how, std::chrono::milliseconds patience) {
  const auto end = clock::now() + patience;
  for (;;) {
    unique_fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (fd.fd < 0) return fail(problem_with("open", file));
    struct stat ours{}, there{};
    if (::fstat(fd.fd, &ours) != 0) return fail(problem_with("look at", file));
    while (::flock(fd.fd, (how == kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return fail(problem_with("lock", file));
      if (clock::now() >= end) return fail(ec::locked, file.filename().string() + " is held by " + holder_of(ours.st_ino));
      std::this_thread::sleep_for(pause);
    }
    // Its holder before us may have removed it: then this file is nobody's, and another has its name.
    if (::stat(file.c_str(), &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev) return file_lock(std::move(fd), file);
  }
}

bool file_lock::left_behind(const std::filesystem::path& file) {
  const unique_fd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); // whatever lies there
  return fd.fd >= 0 && ::flock(fd.fd, LOCK_SH | LOCK_NB) == 0;
}

std::optional<file_lock> file_lock::take_or_go_on(const std::filesystem::path& file, kind how, std::chrono::milliseconds patience, const std::atomic<bool>* cancel, std::atomic<bool>& in_vain) {
  const auto end = clock::now() + patience;
  for (;;) {
    auto taken = take(file, how, look_at_cancel);
    if (taken) {
      in_vain = false;
      return std::move(*taken);
    }
    if (taken.error().code != ec::locked || in_vain || (cancel && *cancel)) return std::nullopt;
    if (clock::now() > end) in_vain = true;
  }
}

file_lock& file_lock::operator=(file_lock&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  fd_ = std::move(other.fd_);
  file_ = std::move(other.file_);
  return *this;
}

/// A child between fork and exec has the descriptor, too: closing would not do.
void file_lock::let_go() {
  if (fd_.fd >= 0) ::flock(fd_.fd, LOCK_UN);
  fd_.reset();
}

void file_lock::remove() {
  if (fd_.fd < 0) return;
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  let_go();
}

} // namespace pragma
