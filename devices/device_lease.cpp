#include "devices/device_lease.hpp"

#include "base/file_lock.hpp"
#include "base/files.hpp"

#include <cctype>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pragma {

namespace {

constexpr auto poll = std::chrono::milliseconds(10);
/// For another process: the longest comparison takes less. Who holds it for longer was stopped (Ctrl-Z), and would be waited for in vain.
constexpr auto patience = std::chrono::seconds(120);

/// One for all processes of this user on this machine, whatever their PRAGMA_HOME and TMPDIR are; where somebody else's folder has the name, that of the caches.
std::filesystem::path lease_folder() {
  const auto common = std::filesystem::path(P_tmpdir) / ("pragma-leases-" + std::to_string(::geteuid())); // the C library's, which no environment changes
  struct stat found{};
  ::mkdir(common.c_str(), 0700);
  const bool ours = ::lstat(common.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() && (found.st_mode & 077) == 0;
  return ours ? common : cache_home();
}

bool is_true(const std::atomic<bool>* flag) { return flag && flag->load(); }

} // namespace

struct device_lease::shared {
  std::recursive_timed_mutex mutex;
  int depth = 0;          ///< of the thread that holds the mutex, as all that follows
  std::optional<file_lock> file;
  std::atomic<bool> disturbed = false; ///< the file could not be locked in time; until it can, nobody waits for it

  /// False when it was cancelled.
  bool lock_file(const device_choice& device, const std::atomic<bool>* cancel) {
    const auto path = lease_file(device);
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    file = file_lock::take_or_go_on(path, file_lock::kind::exclusive, patience, cancel, disturbed);
    return file || !is_true(cancel);
  }
};

device_lease::device_lease(device_lease&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}

device_lease& device_lease::operator=(device_lease&& other) noexcept {
  if (this != &other) {
    unlock();
    held_ = std::exchange(other.held_, nullptr);
  }
  return *this;
}

void device_lease::unlock() {
  if (!held_) return;
  if (--held_->depth == 0) held_->file.reset();
  held_->mutex.unlock();
  held_ = nullptr;
}

bool device_lease::disturbed() const { return held_ && held_->disturbed; }

std::filesystem::path lease_file(const device_choice& device) {
  const auto b = find_backend(device.backend);
  auto name = device.backend + "-" + (b ? driver_number(*b, device.index) : std::to_string(device.index));
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) name += std::string("-") + host; // home folders are shared
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return lease_folder() / ("device-" + name + ".lock");
}

device_lease lease_device(const device_choice& device, const std::atomic<bool>* cancel) {
  static std::mutex lock;
  static std::map<std::string, device_lease::shared> leases;
  device_lease lease;
  if (!device.on_device()) return lease;
  auto& one = [&]() -> device_lease::shared& {
    const std::lock_guard guard(lock);
    return leases[device.text()];
  }();
  while (!one.mutex.try_lock_for(poll))
    if (is_true(cancel)) return lease;
  if (one.depth == 0 && !one.lock_file(device, cancel)) {
    one.mutex.unlock();
    return lease;
  }
  ++one.depth;
  lease.held_ = &one;
  return lease;
}

} // namespace pragma
