// What a manifest's tool says of itself: whether it is there, its version, what stands in its way, and the names that it knows.
#include "profilers/by_manifest.hpp"

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <glob.h>
#include <mutex>
#include <regex>
#include <set>

namespace pragma {

namespace {

namespace fs = std::filesystem;

constexpr double version_seconds = 20;          ///< a first start may load much
constexpr double list_seconds = 120;            ///< ncu asks the driver for thousands
constexpr size_t max_list_bytes = 32u << 20;
constexpr int sys_admin = 21;                   ///< CAP_SYS_ADMIN's bit

/// The newest of the paths that fit, or what PATH finds.
std::string program_of(const std::vector<std::string>& candidates) {
  for (const auto& candidate : candidates) {
    if (candidate.find('/') == std::string::npos) {
      if (auto found = find_program(candidate); !found.empty()) return found;
      continue;
    }
    glob_t paths{};
    std::vector<std::string> found;
    if (::glob(candidate.c_str(), 0, nullptr, &paths) == 0) found.assign(paths.gl_pathv, paths.gl_pathv + paths.gl_pathc);
    ::globfree(&paths);
    std::erase_if(found, [](const auto& path) { return find_program(path).empty(); });
    if (!found.empty()) return found.back();
  }
  return {};
}

/// Effective capabilities of this process hold CAP_SYS_ADMIN.
bool is_capable() {
  const auto status = read_file("/proc/self/status");
  if (!status) return false;
  const auto at = status->find("CapEff:");
  if (at == std::string::npos) return false;
  return (std::strtoull(status->c_str() + at + 7, nullptr, 16) >> sys_admin & 1) != 0;
}

std::string version_of(const collect_manifest& m, const std::string& program) {
  if (m.probe.argv.empty()) return {};
  process_spec spec;
  for (const auto& word : m.probe.argv) spec.argv.push_back(word == "{program}" ? program : word);
  spec.env = {{"LC_ALL", "C"}};
  spec.limits.wall_seconds = version_seconds;
  const auto run = run_process(spec);
  if (!run) return {};
  std::smatch groups;
  const auto text = run->out + "\n" + run->err;
  return std::regex_search(text, groups, std::regex(m.probe.version)) && groups.size() > 1 ? printable(groups[1].str().substr(0, 60)) : std::string();
}

/// Asked once a process for each program: the tool's start is slow, and it does not change under us.
std::string cached_version(const collect_manifest& m, const std::string& program) {
  static std::mutex lock;
  static std::map<std::string, std::string> known;
  const std::lock_guard guard(lock);
  const auto key = program + '\0' + m.probe.version;
  if (const auto at = known.find(key); at != known.end()) return at->second;
  return known[key] = version_of(m, program);
}

/// A name of the tool's lists, without what may follow it.
struct base_name {
  std::string type;
  bool plain = false;
};
using name_index = std::map<std::string, base_name>;

void add_names(const std::string& text, const name_list& list, const name_rules& rules, name_index& index) {
  if (!rules.pattern.empty() && list.format != "csv" && list.format != "json") {
    const std::regex pattern(rules.pattern);
    for (const auto& line : split(text, '\n'))
      if (std::smatch groups; std::regex_search(line, groups, pattern)) index.emplace(groups[1].str(), base_name{"", list.plain});
    return;
  }
  pass_output form;
  form.format = list.format;
  form.columns.metric = rules.column;
  const auto table = read_table(text, form, "list");
  if (!table || !table->has(rules.column)) return;
  const auto name = table->find(rules.column), type = table->find(rules.type);
  for (const auto& row : table->rows)
    if (!row[name].empty()) index.emplace(row[name], base_name{type < row.size() ? row[type] : std::string(), list.plain});
}

name_index read_lists(const collect_manifest& m, const std::string& program, std::string& problem) {
  name_index index;
  for (const auto& list : m.lists) {
    process_spec spec;
    spec.argv = list.argv;
    if (spec.argv.empty()) continue;
    if (spec.argv.front() == fs::path(program).filename()) spec.argv.front() = program; // PATH need not know it
    spec.env = {{"LC_ALL", "C"}, {"PAGER", "cat"}};
    spec.limits.wall_seconds = list_seconds;
    spec.max_output = max_list_bytes;
    const auto run = run_process(spec);
    if (!run || !run->ok()) {
      problem = join(list.argv, " ") + ": " + (run ? describe_end(*run, list_seconds) + " " + printable(trim(run->err).substr(0, 200)) : run.error().message);
      continue;
    }
    const auto before = index.size();
    add_names(run->out, list, m.names, index);
    if (index.size() == before) problem = join(list.argv, " ") + " printed no names that the manifest's \"names\" finds";
  }
  return index;
}

const name_index& cached_lists(const collect_manifest& m, const std::string& program, std::string& problem) {
  static std::mutex lock;
  static std::map<std::string, name_index> known;
  const std::lock_guard guard(lock);
  const auto key = m.name + '\0' + program + '\0' + json(m.lists).dump();
  auto at = known.find(key);
  if (at == known.end()) {
    at = known.emplace(key, read_lists(m, program, problem)).first;
    if (at->second.empty()) {
      known.erase(at);
      static const name_index none;
      return none; // a tool that failed may work the next time
    }
  }
  return at->second;
}

/// All that may follow a base name of that type: ".avg.per_second"; one empty text when it is complete.
std::vector<std::string> endings(const name_rules& rules, const base_name& base) {
  const auto known = rules.suffixes.find(base.type);
  if (base.plain || known == rules.suffixes.end()) return {""};
  std::vector<std::string> all{""};
  for (const auto& parts : known->second) {
    std::vector<std::string> longer;
    for (const auto& start : all)
      for (const auto& part : parts) longer.push_back(part.empty() ? start : start + "." + part);
    all = std::move(longer);
  }
  return all;
}

bool has_name(const name_index& index, const name_rules& rules, const std::string& name) {
  // Base names may hold dots themselves: every prefix up to a dot is tried.
  for (auto end = name.size(); end != std::string::npos && end != 0; end = name.rfind('.', end - 1)) {
    const auto base = index.find(name.substr(0, end));
    if (base == index.end()) continue;
    const auto all = endings(rules, base->second);
    if (std::find(all.begin(), all.end(), name.substr(end)) != all.end()) return true;
  }
  return false;
}

/// Of a known base the nearest endings; else the nearest bases with the same ending where they can have it.
std::vector<std::string> nearest(const name_index& index, const name_rules& rules, const std::string& name, std::vector<std::string> others) {
  const auto dot = name.find('.');
  const auto base = name.substr(0, dot), ending = dot == std::string::npos ? std::string() : name.substr(dot);
  if (const auto known = index.find(base); known != index.end()) {
    std::vector<std::string> full;
    for (const auto& e : endings(rules, known->second)) full.push_back(base + e);
    return nearest_names(name, full);
  }
  for (const auto& [known, type] : index) others.push_back(known);
  std::vector<std::string> near;
  for (const auto& found : nearest_names(base, others)) {
    const auto at = index.find(found);
    const auto all = at == index.end() ? std::vector<std::string>{""} : endings(rules, at->second);
    near.push_back(found + (std::find(all.begin(), all.end(), ending) != all.end() ? ending : all.front()));
  }
  return near;
}

} // namespace

probe_result probe_manifest(const collect_manifest& m) {
  probe_result result;
  result.program = program_of(m.programs);
  result.found = !result.program.empty();
  if (!result.found) {
    result.remedy = m.install;
    return result;
  }
  result.version = cached_version(m, result.program);
  for (const auto& check : m.probe.checks) {
    const auto text = read_file(check.file);
    if (!text || !std::regex_search(*text, std::regex(check.pattern)) || (check.unless_capable && is_capable())) continue;
    result.obstacle = check.reason;
    result.remedy = check.remedy;
    break;
  }
  return result;
}

tool_status manifest_status(const collect_manifest& m) {
  const auto probe = probe_manifest(m);
  tool_status status;
  status.name = m.name;
  status.found = probe.found;
  status.version = probe.version;
  status.problem = probe.found ? probe.obstacle : "not installed";
  if (!status.problem.empty() && !probe.remedy.empty()) status.problem += " (" + probe.remedy + ")";
  status.enables = std::to_string(m.default_metrics().size()) + " metrics of candidates on " + join(m.backends, ", ");
  return status;
}

expected<void> check_metric_names(const collect_manifest& m, const std::vector<std::string>& names) {
  const auto defaults = m.default_metrics();
  auto open = names;
  std::erase_if(open, [&](const auto& n) { return defaults.count(n) != 0 || std::find(m.names.more.begin(), m.names.more.end(), n) != m.names.more.end(); });
  if (open.empty()) return {};
  std::vector<std::string> others = m.names.more;
  for (const auto& [name, unit] : defaults) others.push_back(name);
  std::string problem;
  const auto program = program_of(m.programs);
  if (program.empty()) return fail(ec::not_found, m.name + " is not installed: " + join(open, ", ") + " cannot be measured here", m.install);
  static const name_index none;
  const auto& index = m.lists.empty() ? none : cached_lists(m, program, problem);
  if (!m.lists.empty() && index.empty())
    return fail(ec::tool_failed, "cannot ask " + m.name + " for the names of its metrics: " + problem, "without --metrics the default ones are measured");
  for (const auto& name : open) {
    if (has_name(index, m.names, name)) continue;
    const auto near = nearest(index, m.names, name, others);
    return fail(ec::invalid_argument, m.name + " has no metric named '" + printable(name.substr(0, 200)) + "' on this device",
                near.empty() ? "its own list: " + (m.lists.empty() ? "none" : join(m.lists.front().argv, " ")) : "did you mean " + join(near, ", ") + "?");
  }
  return {};
}

} // namespace pragma
