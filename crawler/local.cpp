#include "crawler/local.hpp"

#include "base/text.hpp"
#include "crawler/gunzip.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr int max_includes = 5; ///< ".so" lines from one manual page to the next

struct unique_fd {
  int fd = -1;
  ~unique_fd() {
    if (fd >= 0) ::close(fd);
  }
};

local_page trouble(local_page::kind what, std::string reason) {
  local_page page;
  page.what = what;
  page.reason = std::move(reason);
  return page;
}

/// Where an open file really lies, links followed.
std::string real_path_of(int fd) {
  char text[PATH_MAX];
  const auto n = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text, sizeof text);
  return n > 0 && n < static_cast<ssize_t>(sizeof text) ? std::string(text, static_cast<size_t>(n)) : "";
}

/// Reads a regular file; `within`: the folder that it must really lie in, empty for any.
local_page read_regular(const std::string& path, const std::string& within, uint64_t max_bytes) {
  using kind = local_page::kind;
  const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    const int why = errno;
    return trouble(why == ENOENT || why == ENOTDIR ? kind::missing : kind::failed, std::string("cannot be read: ") + std::strerror(why));
  }
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return trouble(kind::failed, std::string("cannot be read: ") + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return trouble(kind::refused, "a folder, not a page");
  if (!S_ISREG(info.st_mode)) return trouble(kind::refused, "not a regular file");
  if (!within.empty()) {
    const auto real = real_path_of(file.fd);
    if (!real.starts_with(within.ends_with('/') ? within : within + "/"))
      return trouble(kind::refused, "a symbolic link leads it out of " + printable(within));
  }
  local_page page;
  page.what = kind::content;
  std::string chunk(256 << 10, '\0');
  while (true) {
    const auto n = ::read(file.fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return trouble(kind::failed, std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) break;
    page.bytes.append(chunk.data(), static_cast<size_t>(n));
    if (page.bytes.size() > max_bytes) return trouble(kind::failed, "longer than " + format_bytes(static_cast<double>(max_bytes)));
  }
  if (is_gzip(page.bytes)) {
    auto text = gunzip(page.bytes, max_bytes);
    if (!text) return trouble(kind::failed, text.error().message);
    page.bytes = std::move(*text);
  }
  return page;
}

std::string real_folder(const std::string& path) {
  std::error_code problem;
  const auto real = fs::canonical(path, problem);
  return problem ? "" : real.string();
}

/// "man1/x.1" of a page that holds nothing but ".so man1/x.1"; empty otherwise.
std::string included_page(std::string_view bytes) {
  for (const auto& line : split(bytes.substr(0, 1024), '\n')) {
    if (line.empty() || line.starts_with(".\\\"") || line.starts_with("'\\\"")) continue;
    if (!line.starts_with(".so ")) return {};
    const auto target = trim(std::string_view(line).substr(4));
    const bool safe = !target.empty() && target.front() != '/' && target.find("..") == std::string::npos && target.find(' ') == std::string::npos &&
                      target.find('\0') == std::string::npos;
    return safe ? target : "";
  }
  return {};
}

} // namespace

local_page read_local_file(const page_url& url, const std::vector<page_url>& roots, uint64_t max_bytes) {
  using kind = local_page::kind;
  auto path = file_path(url);
  if (!path) return trouble(kind::refused, path.error().message);
  std::string within;
  bool known = false;
  for (const auto& root : roots) {
    if (root.scheme != "file") continue;
    auto root_path = file_path(root);
    if (!root_path) continue;
    if (*path == *root_path) { // what the user named may lie anywhere
      known = true;
      within.clear();
      break;
    }
    std::error_code ignored;
    const auto folder = fs::is_directory(*root_path, ignored) ? *root_path : fs::path(*root_path).parent_path().string();
    if (known || !path->starts_with(folder.ends_with('/') ? folder : folder + "/")) continue;
    within = real_folder(folder);
    known = !within.empty();
  }
  if (!known) return trouble(kind::refused, "a local file outside the folders of the source");
  auto page = read_regular(*path, within, max_bytes);
  page.name = url.path.ends_with(".gz") ? "file://" + url.path.substr(0, url.path.size() - 3) : url.text();
  return page;
}

std::vector<std::string> man_path_of_system() {
  std::vector<std::string> out;
  const auto add = [&](const std::string& folder) {
    std::error_code ignored;
    if (!folder.empty() && folder.front() == '/' && fs::is_directory(folder, ignored) && std::find(out.begin(), out.end(), folder) == out.end())
      out.push_back(folder);
  };
  const char* given = std::getenv("MANPATH");
  if (given)
    for (const auto& folder : split(given, ':')) add(folder);
  const char* programs = std::getenv("PATH");
  if (programs)
    for (const auto& folder : split(programs, ':')) {
      const auto parent = fs::path(folder).parent_path().string();
      if (folder.empty() || parent.empty() || parent == "/") continue;
      add(parent + "/share/man");
      add(parent + "/man");
    }
  for (const char* folder : {"/usr/local/man", "/usr/local/share/man", "/usr/share/man"}) add(folder);
  return out;
}

local_page read_man_page(const page_url& url, const std::vector<std::string>& man_path, uint64_t max_bytes) {
  using kind = local_page::kind;
  const auto folders = man_path.empty() ? man_path_of_system() : man_path;
  const auto dot = url.path.rfind('.');
  const std::string section = url.path.substr(dot + 1);
  const std::string file = "man" + section.substr(0, 1) + "/" + url.path;
  for (const auto& folder : folders) {
    std::string wanted = file;
    for (int i = 0; i <= max_includes; ++i) {
      local_page page;
      for (const char* ending : {"", ".gz"}) {
        page = read_regular(folder + "/" + wanted + ending, "", max_bytes);
        if (page.what != kind::missing) break;
      }
      page.name = url.path;
      if (page.what == kind::missing) {
        if (i > 0) return trouble(kind::failed, "it refers to " + printable(wanted) + ", which is not there");
        break; // the next folder
      }
      if (page.what != kind::content) return page;
      const auto next = included_page(page.bytes);
      if (next.empty()) return page;
      wanted = next.ends_with(".gz") ? next.substr(0, next.size() - 3) : next;
      if (wanted.find('/') == std::string::npos) wanted = "man" + section.substr(0, 1) + "/" + wanted;
      if (i == max_includes) return trouble(kind::failed, "more than " + std::to_string(max_includes) + " .so lines after each other");
    }
  }
  return trouble(kind::missing, "no such manual page in " + printable(join(folders, ":")) + ": is its package installed?");
}

folder_listing list_folder(const std::string& path, size_t max_files) {
  folder_listing out;
  std::error_code problem;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, problem);
  if (problem) {
    out.problem = "cannot be listed: " + problem.message();
    return out;
  }
  for (const fs::recursive_directory_iterator end; it != end; it.increment(problem)) {
    const auto file = it->path().filename().string();
    std::error_code ignored;
    if (file.starts_with('.')) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file(ignored)) continue; // links to files count as files; where they lead is seen when they are read
    if (out.files.size() == max_files) {
      out.truncated = true;
      break;
    }
    out.files.push_back(file_url(it->path().string()));
  }
  if (problem && out.problem.empty()) out.problem = "cannot be listed to its end: " + problem.message();
  std::sort(out.files.begin(), out.files.end(), [](const page_url& a, const page_url& b) { return a.path < b.path; });
  return out;
}

} // namespace pragma
