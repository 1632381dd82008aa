#include "knowledge/manifest.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <glob.h>

namespace pragma {

namespace {

namespace fs = std::filesystem;

constexpr size_t max_name_bytes = 64;
constexpr uint64_t max_manifest_bytes = 1u << 20;

bool is_web(const std::string& address) { return address.starts_with("http://") || address.starts_with("https://"); }
bool is_man(const std::string& address) { return address.starts_with("man:"); }

template <class T> std::vector<std::string> keys_of(const T& value) {
  std::vector<std::string> names;
  const json members = value; // items() of a temporary would outlive it
  for (const auto& [key, ignored] : members.items()) names.push_back(key);
  return names;
}

/// Man pages are only known to be there once their file is found.
bool man_is_installed(const std::string& page) {
  const auto dot = page.rfind('.');
  if (dot == std::string::npos || dot + 1 >= page.size()) return false;
  const auto section = page.substr(dot + 1);
  std::error_code ignored;
  for (const char* folder : {"/usr/share/man", "/usr/local/share/man", "/usr/local/man"})
    for (const char* ending : {".gz", ""})
      if (fs::is_regular_file(fs::path(folder) / ("man" + section.substr(0, 1)) / (page + ending), ignored)) return true;
  return false;
}

/// Paths that are there; `*` stands for a version.
std::vector<std::string> installed(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

} // namespace

expected<profiler_manifest> parse_manifest(std::string_view text, std::string_view what, bool docs_follow) {
  const std::string where(what);
  auto parsed = parse_json(text, what);
  if (!parsed) return fail(parsed.error());
  auto known = keys_of(profiler_manifest{});
  std::erase(known, "origin");
  auto top = only_known_keys(*parsed, known, where);
  if (!top) return fail(top.error());
  if (top->contains("docs")) {
    auto docs = only_known_keys((*top)["docs"], keys_of(manifest_docs{}), where + ": docs");
    if (!docs) return fail(docs.error());
    (*top)["docs"] = std::move(*docs);
  }
  if (top->contains("catalogue")) {
    if (!(*top)["catalogue"].is_array()) return fail(ec::parse_error, where + ": catalogue must be a list of commands");
    for (auto& command : (*top)["catalogue"]) {
      auto kept = only_known_keys(command, keys_of(catalogue_command{}), where + ": catalogue");
      if (!kept) return fail(kept.error());
      command = std::move(*kept);
    }
  }
  auto manifest = from_json_value<profiler_manifest>(*top, what);
  if (!manifest || docs_follow) return manifest;
  if (auto good = check_manifest(*manifest); !good)
    return fail(good.error().code, where + ": " + good.error().message, good.error().hint);
  return manifest;
}

expected<void> check_manifest(const profiler_manifest& m) {
  const bool name_is_good = !m.name.empty() && m.name.size() <= max_name_bytes &&
                            std::all_of(m.name.begin(), m.name.end(), [](char c) {
                              return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
                            });
  if (!name_is_good)
    return fail(ec::invalid_argument, "'" + printable(m.name.substr(0, 80)) + "' cannot be a profiler's name",
                "use 1 to " + std::to_string(max_name_bytes) + " lower-case letters, digits, '-' and '_'");
  if (m.docs.roots.empty() && m.docs.local.empty() && m.catalogue.empty())
    return fail(ec::invalid_argument, "profiler " + m.name + " has no documentation", "give --docs URL (or a file or folder)");
  for (const auto* list : {&m.docs.roots, &m.docs.local})
    for (const auto& address : *list) {
      if (address.empty()) return fail(ec::invalid_argument, "an address of profiler " + m.name + " is empty");
      const auto scheme = address.find("://");
      if (scheme != std::string::npos && !is_web(address))
        return fail(ec::invalid_argument, "'" + printable(address) + "' cannot be read: only http and https addresses, files and folders, and man:NAME.SECTION");
    }
  for (const auto& command : m.catalogue) {
    if (command.argv.empty()) return fail(ec::invalid_argument, "a catalogue command of profiler " + m.name + " has no argv");
    const std::vector<std::string> formats = {"json", "csv", "yaml", "text"};
    if (std::find(formats.begin(), formats.end(), command.format) == formats.end())
      return fail(ec::invalid_argument, "catalogue format '" + printable(command.format) + "' of profiler " + m.name + " is not known", "known: " + join(formats, ", "));
  }
  if (!(m.docs.delay_seconds >= 0 && m.docs.delay_seconds <= 3600))
    return fail(ec::invalid_argument, "delay_seconds of profiler " + m.name + " must lie between 0 and 3600");
  if (m.docs.max_pages < 1 || m.docs.max_pages > 1'000'000)
    return fail(ec::invalid_argument, "max_pages of profiler " + m.name + " must lie between 1 and 1,000,000");
  return {};
}

expected<std::vector<profiler_manifest>> shipped_manifests(const fs::path& folder) {
  std::vector<profiler_manifest> all;
  std::error_code problem;
  for (const auto& file : fs::directory_iterator(folder, problem)) {
    if (file.path().extension() != ".json") continue;
    auto text = read_file(file.path(), max_manifest_bytes);
    if (!text) return fail(text.error());
    auto m = parse_manifest(*text, file.path().string());
    if (!m) return fail(m.error());
    m->origin = "shipped";
    all.push_back(std::move(*m));
  }
  if (problem) return fail(ec::io_error, "cannot read the folder of shipped profilers " + folder.string() + ": " + problem.message());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

doc_source source_of(const profiler_manifest& m, std::vector<std::string>& missing) {
  doc_source source;
  source.profiler = m.name;
  source.docs = m.docs.roots;
  for (const auto& local : m.docs.local) {
    const auto before = source.docs.size();
    if (is_web(local) || (is_man(local) && man_is_installed(local.substr(4)))) source.docs.push_back(local);
    else if (!is_man(local))
      for (auto& path : installed(local)) source.docs.push_back(std::move(path));
    if (source.docs.size() == before) missing.push_back(local);
  }
  source.allow = m.docs.allow;
  source.deny = m.docs.deny;
  source.allow_private = m.docs.allow_private;
  source.delay_seconds = m.docs.delay_seconds;
  source.max_pages = m.docs.max_pages;
  return source;
}

} // namespace pragma
