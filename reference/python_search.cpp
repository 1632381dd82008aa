#include "reference/python_search.hpp"

#include "base/subprocess.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace pragma {

namespace {

constexpr double import_timeout_seconds = 60; // `import torch` on a cold disk
constexpr const char* look = "import importlib.util as u, sys; sys.exit(8 if u.find_spec('torch') else 9)";
constexpr const char* prove = "import sys, torch; print('%d.%d.%d' % sys.version_info[:3]); print(torch.__version__)";
constexpr const char* list_folders = "import sys; print('\\n'.join([sys.prefix, sys.base_prefix] + [p for p in sys.path if p]))";
constexpr const char* compiled_at = "import importlib.util as u; s = u.find_spec('torch'); print(u.cache_from_source(s.origin)); print(s.submodule_search_locations[0])";
constexpr int has_torch = 8, no_torch = 9; // exit status of `look`

std::mutex mutex;
std::vector<std::pair<std::string, python_info>> known; // by environment_key(): tests change these variables

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string environment_key() { return join({variable("PRAGMA_PYTHON"), variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), variable("PATH")}, "\n"); }

/// The Python of the environment that is active in the user's shell (by venv's and virtualenv's variable, then conda's); empty where none is.
std::string active_python() {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto folder = variable(name); !folder.empty()) return folder + "/bin/python3";
  return {};
}

const python_info* recall(const std::string& key) {
  for (const auto& [k, info] : known)
    if (k == key) return &info;
  return nullptr;
}

/// In order of preference, each once; what is named but cannot be executed goes to `rejected`.
std::vector<std::string> candidates(std::vector<std::string>& rejected) {
  const auto named = variable("PRAGMA_PYTHON"), active = active_python();
  std::vector<std::string> all, result;
  if (!named.empty()) { // who names one is never given another
    all.push_back(named);
  } else {
    if (!active.empty()) all.push_back(active);
    all.emplace_back("/usr/bin/python3");
    for (const auto& folder : split(variable("PATH"), ':'))
      if (!folder.empty()) all.push_back(folder + "/python3");
  }
  for (const auto& executable : all) {
    if (std::find(result.begin(), result.end(), executable) != result.end()) continue;
    if (!find_program(executable).empty()) result.push_back(executable);
    else if (executable == named || executable == active) rejected.push_back(executable + ": not an executable file");
  }
  return result;
}

expected<process_result> ask(const std::string& executable, const char* program) {
  process_spec spec;
  spec.argv = {executable, "-c", program};
  spec.limits.wall_seconds = import_timeout_seconds;
  spec.env = {{"PYTHONDONTWRITEBYTECODE", "1"}, {"OMP_NUM_THREADS", "1"}};
  return run_process(spec);
}

std::string why_not(const process_result& ran) {
  if (ran.exit_code == no_torch || ran.err.find("No module named 'torch'") != std::string::npos) return "no module named torch";
  if (ran.ok()) return "it is not a Python";
  const auto said = split(trim(printable(ran.err)), '\n');
  return describe_end(ran, import_timeout_seconds) + (said.empty() || said.back().empty() ? "" : ": " + said.back());
}

} // namespace

python_info likely_python() {
  const std::lock_guard lock(mutex);
  if (const auto* found = recall(environment_key())) return *found;
  python_info guess;
  for (const auto& executable : candidates(guess.rejected)) {
    const auto ran = ask(executable, look);
    // Only the interpreter itself ends with this status; /bin/true would end with 0.
    if (ran && ran->exit_code == has_torch) {
      guess.executable = executable;
      return guess;
    }
    guess.rejected.push_back(executable + ": " + (ran ? why_not(*ran) : ran.error().message));
  }
  return guess;
}

void remember_python(const python_info& info) {
  const std::lock_guard lock(mutex);
  const auto key = environment_key();
  if (!recall(key)) known.emplace_back(key, info);
}

std::string passed_over(const python_info& chosen) {
  const auto active = active_python();
  if (active.empty() || !variable("PRAGMA_PYTHON").empty() || chosen.executable == active) return {};
  for (const auto& line : chosen.rejected)
    if (line.starts_with(active + ": ")) return "the active environment's Python is not used (" + line + "): the reference runs in " + chosen.executable;
  return {};
}

std::string uncompiled(const python_info& python) {
  const auto ran = ask(python.executable, compiled_at);
  const auto lines = ran && ran->ok() ? split(trim(ran->out), '\n') : std::vector<std::string>{};
  std::error_code ignored;
  if (lines.size() != 2 || std::filesystem::exists(lines[0], ignored)) return {};
  return "Torch's Python files are not compiled to bytecode there, which adds seconds to the start of each process; once, as who may write there: " + python.executable + " -m compileall -q -j 0 " + lines[1];
}

std::vector<std::filesystem::path> python_folders(const std::string& executable) {
  static std::mutex lock;
  static std::vector<std::pair<std::string, std::vector<std::filesystem::path>>> asked;
  const std::lock_guard guard(lock);
  for (const auto& [name, folders] : asked)
    if (name == executable) return folders;
  std::vector<std::filesystem::path> folders;
  std::vector<std::string> names{executable};
  if (const auto ran = ask(executable, list_folders); ran && ran->ok())
    for (const auto& line : split(trim(ran->out), '\n')) names.push_back(line);
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  for (const auto& folder : split(libraries ? libraries : "", ':')) names.push_back(folder);
  for (const auto& name : names)
    if (name.size() > 1 && name.front() == '/') folders.emplace_back(name);
  asked.emplace_back(executable, folders);
  return folders;
}

expected<python_info> find_python() {
  const std::lock_guard lock(mutex);
  const auto key = environment_key();
  if (const auto* found = recall(key)) return *found;
  python_info found;
  for (const auto& executable : candidates(found.rejected)) {
    const auto ran = ask(executable, prove);
    if (!ran) {
      found.rejected.push_back(executable + ": " + ran.error().message);
      continue;
    }
    const auto lines = split(trim(ran->out), '\n');
    if (ran->ok() && lines.size() >= 2) {
      found.executable = executable;
      found.version = lines[lines.size() - 2];
      found.torch = lines.back();
      known.emplace_back(key, found);
      return found;
    }
    found.rejected.push_back(executable + ": " + why_not(*ran));
  }
  if (!variable("PRAGMA_PYTHON").empty())
    return fail(ec::not_found, "PRAGMA_PYTHON names no Python with Torch: " + join(found.rejected, "; "), "correct it, or unset it to have one searched for");
  return fail(ec::not_found, "no Python with Torch found; tried " + join(found.rejected, "; "),
              "install Debian's python3-torch (scripts/setup), or set PRAGMA_PYTHON to a Python that imports torch");
}

} // namespace pragma
