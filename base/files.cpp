#include "base/files.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Folders that a candidate has closed against their owner. Links are not followed.
void open_folders(const fs::path& folder) {
  ::fchmodat(AT_FDCWD, folder.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.symlink_status(ignored).type() == fs::file_type::directory) open_folders(entry.path());
}

} // namespace

expected<std::string> read_file(const fs::path& path, uint64_t max_bytes) {
  unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    const int why = errno;
    return fail(why == ENOENT ? ec::not_found : ec::io_error, "cannot read " + path.string() + ": " + std::strerror(why));
  }
  struct stat info {};
  if (::fstat(file.fd, &info) == 0 && S_ISDIR(info.st_mode))
    return fail(ec::invalid_argument, path.string() + " is a folder, a file was expected");
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const auto n = ::read(file.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ec::io_error, "cannot read " + path.string() + ": " + std::strerror(errno));
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > max_bytes)
      return fail(ec::limit_exceeded, path.string() + " is larger than " + std::to_string(max_bytes) + " bytes");
  }
}

expected<void> write_file_atomic(const fs::path& path, std::string_view content) {
  const auto problem = [&](const char* what) {
    const int why = errno;
    return fail(ec::io_error, std::string("cannot ") + what + " " + path.string() + ": " + std::strerror(why),
                why == ENOSPC ? "the disk is full: free some space and try again" : "");
  };
  std::string neighbour = path.string() + ".XXXXXX";
  unique_fd file{::mkostemp(neighbour.data(), O_CLOEXEC)};
  if (file.fd < 0) return problem("create a file beside");
  for (size_t done = 0; done < content.size();) {
    const auto n = ::write(file.fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      auto e = problem("write");
      ::unlink(neighbour.c_str());
      return e;
    }
    done += static_cast<size_t>(n);
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.fd, 0666 & ~mask);
  if (::fsync(file.fd) != 0 || ::rename(neighbour.c_str(), path.c_str()) != 0) {
    auto e = problem("write");
    ::unlink(neighbour.c_str());
    return e;
  }
  return {};
}

/// Whoever is not its owner can pass all of it.
static bool open_to_others(const fs::path& folder) {
  fs::path at;
  for (const auto& part : folder) {
    at /= part;
    struct stat info {};
    if (::stat(at.c_str(), &info) == 0 && !(info.st_mode & S_IXOTH)) return false;
  }
  return true;
}

expected<temp_dir> temp_dir::create(std::string_view prefix, unsigned mode) {
  std::error_code ignored;
  std::string base = fs::temp_directory_path(ignored).string();
  if (base.empty()) base = "/tmp";
  // Root's own (TMPDIR=/root/tmp, libpam-tmpdir's /tmp/user/0) is closed to the uid that generated code, and its compiler, have there.
  if ((mode & S_IXOTH) && ::geteuid() == 0 && !open_to_others(base)) base = "/tmp";
  std::string name = base + "/" + std::string(prefix) + "XXXXXX";
  if (!::mkdtemp(name.data()))
    return fail(ec::io_error, "cannot make a temporary folder in " + base + ": " + std::strerror(errno), "set TMPDIR to a folder that can be written");
  ::chmod(name.c_str(), mode);
  temp_dir dir;
  dir.path_ = name;
  return dir;
}

temp_dir::temp_dir(temp_dir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

temp_dir& temp_dir::operator=(temp_dir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

temp_dir::~temp_dir() {
  if (path_.empty()) return;
  std::error_code problem;
  fs::remove_all(path_, problem);
  if (!problem) return;
  open_folders(path_);
  fs::remove_all(path_, problem);
}

fs::path data_home() {
  if (auto home = environment("PRAGMA_HOME"); !home.empty()) return home;
  if (auto xdg = environment("XDG_DATA_HOME"); !xdg.empty()) return fs::path(xdg) / "pragma";
  return fs::path(environment("HOME").empty() ? "." : environment("HOME")) / ".local/share/pragma";
}

fs::path cache_home() {
  if (auto home = environment("PRAGMA_HOME"); !home.empty()) return fs::path(home) / "cache";
  if (auto xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "pragma";
  return fs::path(environment("HOME").empty() ? "." : environment("HOME")) / ".cache/pragma";
}

fs::path share_dir() {
  if (auto share = environment("PRAGMA_SHARE"); !share.empty()) return share;
  std::error_code ignored;
  const auto self = fs::read_symlink("/proc/self/exe", ignored);
  const auto installed = self.parent_path().parent_path() / "share/pragma";
  if (fs::exists(installed / "runner.o", ignored)) return installed;
  return fs::path(PRAGMA_BINARY_DIR) / "share/pragma";
}

} // namespace pragma
