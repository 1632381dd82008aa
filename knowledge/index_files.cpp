#include "knowledge/index_files.hpp"

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr const char* stamp_file = "meta.json";
constexpr const char* folder_prefix = "index-";
constexpr const char* build_hint = "build it again: `pragma kb build`";
constexpr uint64_t max_stamp_bytes = 1 << 20;

tl::unexpected<error> system_problem(const std::string& what, const fs::path& path) {
  const int why = errno;
  return fail(ec::io_error, "cannot " + what + " " + path.string() + ": " + std::strerror(why),
              why == ENOSPC ? "the disk is full: free some space and try again" : "");
}

expected<void> sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_problem("open", folder);
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL; // some file systems cannot sync a folder
  const int why = errno;
  ::close(fd);
  errno = why;
  if (!synced) return system_problem("sync", folder);
  return {};
}

/// Only a name of ours may be joined to a path that is later removed.
bool is_index_folder(const std::string& name) {
  return name.starts_with(folder_prefix) && name.find('/') == std::string::npos;
}

} // namespace

expected<index_stamp> read_stamp(const fs::path& folder) {
  const auto file = folder / stamp_file;
  const auto text = read_file(file, max_stamp_bytes);
  if (!text && text.error().code == ec::not_found)
    return fail(ec::not_found, "there is no index in " + folder.string(), "build it: `pragma kb build`");
  if (!text) return fail(text.error());
  auto damaged = [&](const std::string& why) { return fail(ec::parse_error, file.string() + " is damaged (" + why + ")", build_hint); };
  const auto value = parse_if_json(*text);
  if (!value.is_object()) return damaged("not a JSON object");
  try {
    index_stamp stamp;
    stamp.version = value.at("version").get<int>();
    if (stamp.version != index_version)
      return fail(ec::parse_error, "the index in " + folder.string() + " has version " + std::to_string(stamp.version) + ", this pragma reads " + std::to_string(index_version), build_hint);
    stamp.folder = value.at("folder").get<std::string>();
    stamp.info = value.at("info").get<index_info>();
    stamp.files = value.at("files").get<std::map<std::string, std::string>>();
    if (!is_index_folder(stamp.folder)) return damaged("folder '" + printable(stamp.folder) + "'");
    return stamp;
  } catch (const json::exception& e) {
    return damaged(e.what());
  }
}

expected<void> write_stamp(const fs::path& folder, const index_stamp& stamp) {
  const json value = {{"version", stamp.version}, {"folder", stamp.folder}, {"info", stamp.info}, {"files", stamp.files}};
  if (auto synced = sync_folder(folder / stamp.folder); !synced) return synced;
  if (auto written = write_file_atomic(folder / stamp_file, value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"); !written)
    return written;
  return sync_folder(folder);
}

expected<std::string> file_sha256(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_problem("read", file);
  sha256_stream hash;
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const auto n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      auto e = system_problem("read", file);
      ::close(fd);
      return e;
    }
    if (n == 0) break;
    hash.update(std::string_view(buffer).substr(0, static_cast<size_t>(n)));
  }
  ::close(fd);
  return hash.finish_hex();
}

expected<void> verify_files(const fs::path& folder, const index_stamp& stamp) {
  for (const auto& [name, sum] : stamp.files) {
    const auto file = folder / stamp.folder / name;
    const auto found = file_sha256(file);
    if (!found) return fail(found.error());
    if (*found != sum) return fail(ec::parse_error, file.string() + " is damaged (SHA-256 is not the one of meta.json)", build_hint);
  }
  return {};
}

expected<build_lock> build_lock::take(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) return fail(ec::io_error, "cannot make the folder " + folder.string() + ": " + problem.message());
  const auto file = folder / "lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return system_problem("open", file);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    auto e = system_problem("lock", file);
    ::close(fd);
    if (!taken) return e;
    return fail(ec::locked, "another process is building the index in " + folder.string(), "wait for it to end");
  }
  return build_lock(fd);
}

build_lock::~build_lock() {
  if (fd_ >= 0) ::close(fd_);
}

void remove_other_indexes(const fs::path& folder, const std::string& keep) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& item : fs::directory_iterator(folder, ignored)) {
    const auto name = item.path().filename().string();
    if (is_index_folder(name) && name != keep) old.push_back(item.path());
  }
  for (const auto& path : old) fs::remove_all(path, ignored);
}

expected<std::string> make_index_folder(const fs::path& folder) {
  auto path = (folder / folder_prefix).string() + "XXXXXX";
  if (!::mkdtemp(path.data())) return system_problem("make a folder in", folder);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(path.c_str(), 0777 & ~mask);
  return fs::path(path).filename().string();
}

} // namespace pragma
