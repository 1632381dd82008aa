#include "kernels/python_process.hpp"

#include "base/files.hpp"
#include "kernels/python_search.hpp"

#include <cstdlib>

namespace pragma {

expected<void> prepare_python(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                              process_spec& spec, sandbox_options& sandbox) {
  namespace fs = std::filesystem;
  auto chosen = find_backend(built.device.backend);
  if (!chosen) return fail(chosen.error());
  // The user's file may lie where the sandbox's uid cannot read.
  const auto folder = built.folder->path();
  const auto task = folder / memory.task.filename();
  auto sidecar = memory.task;
  sidecar.replace_extension(".json");
  std::error_code ignored;
  for (const auto& file : {memory.task, sidecar}) {
    if (file.empty() || !fs::exists(file, ignored)) continue;
    auto text = read_file(file);
    if (!text) return fail(text.error());
    if (auto written = write_file_atomic(folder / file.filename(), *text); !written) return written;
    fs::permissions(folder / file.filename(), fs::perms(0644), ignored);
  }
  std::vector<std::string> names;
  for (const auto& spec_of : memory.params.specs) names.push_back(spec_of.name);
  const json settings = {{"device", chosen->on_device() ? chosen->torch_device + ":" + std::to_string(built.device.index) : "cpu"},
                         {"task", task.string()}, {"module", built.module.string()}, {"params", names}, {"allow_tf32", built.allow_tf32}};
  const auto scripts = share_dir() / "python";
  spec.argv = options.wrapper;
  for (const auto& word : {built.executable.string(), std::string("-B"), (scripts / "candidate_runner.py").string(), layout, settings.dump()})
    spec.argv.push_back(word);
  spec.cwd = built.scratch.string();
  const auto threads = std::to_string(std::max(1, options.threads));
  spec.env = {{"OMP_NUM_THREADS", threads}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHONNOUSERSITE", "1"}, {"PYTHONHASHSEED", "0"},
              {"USER", "candidate"}, {"LOGNAME", "candidate"},
              {"TRITON_CACHE_DIR", (built.scratch / "triton").string()}, {"TORCHINDUCTOR_CACHE_DIR", (built.scratch / "inductor").string()},
              {"CUDA_CACHE_PATH", (built.scratch / "cuda").string()}};
  auto handed_on = chosen->environment;
  handed_on.push_back("LD_LIBRARY_PATH");
  for (const auto& name : handed_on)
    if (const char* value = std::getenv(name.c_str())) spec.env.push_back({name, value});
  if (const char* path = std::getenv("PATH")) spec.env.push_back({"PATH", path});
  spec.limits.wall_seconds = 0;
  spec.limits.cpu_seconds = options.cpu_seconds;
  sandbox.policy = options.wrapper.empty() ? sandbox_policy::device : sandbox_policy::device_profiler;
  sandbox.scratch = built.scratch;
  sandbox.readable = python_folders(built.executable.string());
  for (const auto& path : {folder, scripts}) sandbox.readable.push_back(path);
  for (const auto& path : matching_files({"/etc/python3*"})) sandbox.readable.push_back(path); // Debian's and Ubuntu's sitecustomize.py
  for (const auto& path : chosen->readable) sandbox.readable.emplace_back(path);
  if (!options.wrapper.empty()) sandbox.readable.emplace_back("/opt");
  sandbox.writable = matching_files(chosen->device_files);
  if (!options.scratch.empty()) {
    sandbox.scratch = options.scratch;
    sandbox.writable.push_back(built.scratch); // what was compiled need not be compiled again
  }
  return {};
}

} // namespace pragma
