#include "execution/triton_cache.hpp"

#include "base/files.hpp"
#include "base/json.hpp"
#include "execution/python_process.hpp"

#include <string>
#include <system_error>

namespace pragma {

namespace fs = std::filesystem;

namespace {

constexpr const char* list_prefix = "__grp__";
constexpr uint64_t most_list_bytes = 1 << 20;
constexpr int most_entries = 1 << 13, most_files = 64; ///< a large network has some hundred entries of some ten files; who leaves more shall not keep us busy

bool is(fs::file_type wanted, const fs::path& path) {
  std::error_code unknown;
  return fs::symlink_status(path, unknown).type() == wanted;
}

/// A new folder that the candidate's process may write to.
bool make_folder(const fs::path& path) {
  std::error_code failed;
  if (!fs::create_directory(path, failed)) return false;
  fs::permissions(path, fs::perms::all, failed);
  return !failed;
}

/// The same list for files that lie in `folder`; empty: none that this Triton writes.
std::string list_in(const fs::path& folder, const std::string& list) {
  const auto told = json::parse(list, nullptr, false);
  if (!told.is_object() || !told.contains("child_paths") || !told.at("child_paths").is_object()) return {};
  json paths = json::object();
  for (const auto& [name, path] : told.at("child_paths").items()) {
    if (name.empty() || name != fs::path(name).filename() || !path.is_string()) return {};
    paths[name] = (folder / name).string();
  }
  return json{{"child_paths", paths}}.dump(-1, ' ', true, json::error_handler_t::replace);
}

void take_entry(const fs::path& from, const fs::path& to) {
  std::error_code failed, not_taken;
  int seen = 0;
  for (fs::directory_iterator at(from, failed), end; !failed && at != end && ++seen <= most_files; at.increment(failed)) {
    const auto place = to / at->path().filename();
    if (!is(fs::file_type::regular, at->path())) continue;
    if (!place.filename().string().starts_with(list_prefix)) {
      fs::rename(at->path(), place, not_taken);
      continue;
    }
    const auto list = read_file(at->path(), most_list_bytes);
    const auto anew = list ? list_in(to, *list) : std::string();
    if (!anew.empty()) (void)put_readable(place, anew);
  }
}

} // namespace

void take_compiled(const fs::path& from, const fs::path& to) {
  if (!is(fs::file_type::directory, from)) return;
  if (is(fs::file_type::not_found, to) && !make_folder(to)) return;
  if (!is(fs::file_type::directory, to)) return;
  std::error_code failed;
  int seen = 0;
  for (fs::directory_iterator at(from, failed), end; !failed && at != end && ++seen <= most_entries; at.increment(failed)) {
    const auto place = to / at->path().filename();
    if (is(fs::file_type::directory, at->path()) && make_folder(place)) take_entry(at->path(), place); // a new folder: nothing of the candidate's lies in it
  }
}

} // namespace pragma
