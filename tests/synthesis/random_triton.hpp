// Triton modules of random tasks, run on the stand-in for Triton (triton_stand_in) or under the real Triton's interpreter, against Torch on the CPU. For tests and bench/random_graphs.
#pragma once

#include "base/subprocess.hpp"
#include "random_task.hpp"

namespace pragma {

/// The Triton module of a task's starting schedule, for a GPU that is not here.
struct triton_module {
  std::filesystem::path module, task;
  std::string source;
};

/// unsupported: the coder has no kernel for it.
inline expected<triton_module> write_random_module(reference& ref, const std::filesystem::path& folder, uint64_t seed) {
  triton_module made{folder / ("random_" + std::to_string(seed) + "_triton.py"), folder / ("random_" + std::to_string(seed) + ".py"), ""};
  std::ofstream(made.task) << random_task(seed).text();
  auto described = ref.describe(made.task);
  if (!described) return fail(described.error());
  builtin_options options;
  options.language = "triton";
  auto coder = builtin_coder::create(*described, options);
  if (!coder) return fail(coder.error());
  const auto first = coder->next(std::nullopt);
  if (!first) return fail(ec::internal, "the coder has nothing to offer");
  std::ofstream(made.module) << first->source;
  made.source = first->source;
  return made;
}

/// Each beside Torch on the CPU (triton_stand_in/check.py). Where one differs a task that no check could tell from a simpler answer is unverifiable, and not wrong.
inline std::map<uint64_t, random_outcome> check_random_modules(reference& ref, const std::map<uint64_t, triton_module>& written, const std::string& interpreter = "") {
  using kind = random_outcome::kind;
  process_spec spec;
  spec.argv = {interpreter.empty() ? ref.python().executable : interpreter, TESTS_DIR "/synthesis/triton_stand_in/check.py"};
  if (!interpreter.empty()) spec.argv.push_back("--interpreter");
  for (const auto& [seed, one] : written) {
    spec.argv.push_back(one.module.string());
    spec.argv.push_back(one.task.string());
  }
  spec.limits.wall_seconds = 120.0 * static_cast<double>(written.size());
  const auto ran = run_process(spec);
  std::map<uint64_t, random_outcome> found;
  for (const auto& [seed, one] : written) {
    const auto name = one.module.filename().string();
    if (ran && ran->out.find(name + " ok") != std::string::npos) {
      found[seed] = {kind::right, "", one.source};
      continue;
    }
    const auto at = ran ? ran->err.find(name + ": ") : std::string::npos;
    found[seed] = {at == std::string::npos ? kind::failed : kind::wrong, at == std::string::npos ? "nothing was said of it" : ran->err.substr(at, 1500), one.source};
    verify_options checks;
    checks.seeds = 2;
    auto loaded = ref.load(one.task, 2);
    if (!loaded) continue;
    if (const auto audit = audit_task(*loaded, ref, checks); audit)
      if (const auto why = why_unverifiable(audit->passing_nulls); !why.empty()) found[seed] = {kind::unverifiable, why, one.source};
  }
  return found;
}

} // namespace pragma
