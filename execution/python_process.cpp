#include "execution/python_process.hpp"

#include "base/files.hpp"
#include "reference/python_search.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

namespace pragma {

namespace fs = std::filesystem;

/// With all folders above it that are not there yet.
static void make_readable(const fs::path& folder) {
  std::error_code ignored; // what matters shows when a file is written
  if (folder.empty() || fs::exists(folder, ignored)) return;
  make_readable(folder.parent_path());
  if (fs::create_directory(folder, ignored)) fs::permissions(folder, fs::perms(0755), ignored);
}

expected<void> put_readable(const fs::path& file, std::string_view text) {
  std::error_code ignored;
  make_readable(file.parent_path());
  if (auto written = write_file_atomic(file, text); !written) return written;
  fs::permissions(file, fs::perms(0644), ignored);
  return {};
}

error unreachable_python(const std::string& python, const fs::path& at) {
  std::error_code ignored;
  return {ec::unsupported, "generated code does not run as root here, and its user (uid 65534) cannot pass " + at.string() + " on the way to " + python,
          std::string("`chmod o+") + (fs::is_directory(at, ignored) ? "x " : "rx ") + at.string() + "` lets it pass (it may then still read nothing there but this Python), or name another Python with Torch: PRAGMA_PYTHON"};
}

expected<fs::path> readable_scripts() {
  const auto own = share_dir() / "python";
  if (barred_at(own).empty()) return own;
  static std::mutex one;
  static std::map<fs::path, temp_dir> copies;
  const std::lock_guard lock(one);
  if (const auto known = copies.find(own); known != copies.end()) return known->second.path();
  auto copy = temp_dir::create("pragma-scripts-", 0755);
  if (!copy) return fail(copy.error());
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(own, failed)) {
    if (!file.is_regular_file(failed)) continue;
    auto text = read_file(file.path());
    if (!text) return fail(text.error());
    if (auto written = put_readable(copy->path() / file.path().filename(), *text); !written) return fail(written.error());
  }
  if (failed) return fail(ec::io_error, "cannot read " + own.string() + ": " + failed.message());
  return copies.emplace(own, std::move(*copy)).first->second.path();
}

expected<void> confine_python(const backend& device, const std::string& python, const fs::path& scratch, int threads, process_spec& spec, sandbox_options& sandbox) {
  if (const auto at = barred_at(python); !at.empty()) return fail(unreachable_python(python, at));
  auto scripts = readable_scripts();
  if (!scripts) return fail(scripts.error());
  spec.cwd = scratch.string();
  spec.env = {{"OMP_NUM_THREADS", std::to_string(std::max(1, threads))}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHONHASHSEED", "0"},
              {"USER", "candidate"}, {"LOGNAME", "candidate"},
              {"TRITON_CACHE_DIR", (scratch / "triton").string()}, {"TORCHINDUCTOR_CACHE_DIR", (scratch / inductor_folder).string()},
              {"CUDA_CACHE_PATH", (scratch / "cuda").string()}};
  auto handed_on = device.environment;
  handed_on.push_back("LD_LIBRARY_PATH");
  for (const auto& name : handed_on)
    if (const char* value = std::getenv(name.c_str())) spec.env.push_back({name, value});
  if (const char* path = std::getenv("PATH")) spec.env.push_back({"PATH", path});
  sandbox.policy = sandbox_policy::device;
  sandbox.scratch = scratch;
  sandbox.readable = python_folders(python);
  sandbox.readable.push_back(std::move(*scripts));
  for (const auto& path : matching_files({"/etc/python3*"})) sandbox.readable.push_back(path); // Debian's and Ubuntu's sitecustomize.py
  for (const auto& path : device.readable) sandbox.readable.emplace_back(path);
  sandbox.writable = matching_files(device.device_files);
  return {};
}

void say_user_base(process_spec& spec) {
  if (const char* own = std::getenv("PYTHONUSERBASE")) spec.env.push_back({"PYTHONUSERBASE", own});
  else if (const char* home = std::getenv("HOME")) spec.env.push_back({"PYTHONUSERBASE", (fs::path(home) / ".local").string()});
}

expected<void> prepare_python(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                              process_spec& spec, sandbox_options& sandbox) {
  auto chosen = find_backend(built.device.backend);
  if (!chosen) return fail(chosen.error());
  // The user's file may lie where the sandbox's uid cannot read; it may be called candidate.py, as the module is.
  const auto folder = built.folder->path();
  const auto task = folder / "task" / memory.task.filename();
  auto sidecar = memory.task;
  sidecar.replace_extension(".json");
  std::error_code ignored;
  for (const auto& file : {memory.task, sidecar}) {
    if (file.empty() || !fs::exists(file, ignored)) continue;
    auto text = read_file(file);
    if (!text) return fail(text.error());
    if (auto written = put_readable(task.parent_path() / file.filename(), *text); !written) return written;
  }
  std::vector<std::string> names;
  for (const auto& spec_of : memory.params.specs) names.push_back(spec_of.name);
  const json settings = {{"device", chosen->on_device() ? chosen->torch_device + ":" + std::to_string(built.device.index) : "cpu"},
                         {"task", task.string()}, {"module", built.module.string()}, {"params", names}, {"tf32", built.tf32}};
  if (auto done = confine_python(*chosen, built.executable.string(), built.scratch, options.threads, spec, sandbox); !done) return done;
  auto scripts = readable_scripts();
  if (!scripts) return fail(scripts.error());
  spec.env.push_back({"PYTHONNOUSERSITE", "1"});
  spec.argv = options.wrapper;
  for (const auto& word : {built.executable.string(), std::string("-B"), (*scripts / "candidate_runner.py").string(), layout, settings.dump()})
    spec.argv.push_back(word);
  spec.limits.wall_seconds = 0;
  spec.limits.cpu_seconds = options.cpu_seconds;
  sandbox.readable.push_back(folder);
  if (!options.wrapper.empty()) {
    sandbox.policy = sandbox_policy::device_profiler;
    sandbox.readable.emplace_back("/opt");
  }
  if (!options.scratch.empty()) {
    sandbox.scratch = options.scratch;
    sandbox.writable.push_back(built.scratch); // what was compiled need not be compiled again
  }
  return {};
}

} // namespace pragma
