#include "profilers/by_manifest.hpp"

#include "base/language.hpp"
#include "base/text.hpp"
#include "devices/device_lease.hpp"
#include "kernels/kernel_names.hpp"
#include "execution/runner_process.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace pragma {

namespace {

constexpr double least_device_seconds = 60;   ///< a profiler of a device starts Torch under it and runs each kernel many times
constexpr double spare_seconds = 8;    ///< a budget from here on also pays for a tool's own rules: one start of Torch more
constexpr double exit_seconds = 30;    ///< for writing the results after the last call
constexpr double look_seconds = 120;   ///< for a tool that is asked for the time of each kernel and nothing else
constexpr int64_t calls_before = 2;    ///< one when the module was loaded, one before the range that a tool records
constexpr int tries = 2;               ///< until a tool counts as one that sees nothing here: another run of it may have stood in its way

/// The tools of a backend that are shipped or registered, in the backend's order, then the registered ones that it does not name.
std::vector<collect_manifest> tools_of(const backend& b, const std::vector<json>& registered, std::vector<std::string>* problems) {
  auto all = manifests_for(b.name, registered, problems);
  const auto place = [&](const collect_manifest& m) { return std::find(b.profilers.begin(), b.profilers.end(), m.name) - b.profilers.begin(); };
  std::stable_sort(all.begin(), all.end(), [&](const auto& x, const auto& y) { return place(x) < place(y); });
  std::vector<std::string> own;
  for (const auto& m : registered) own.push_back(m.value("name", ""));
  std::erase_if(all, [&](const auto& m) {
    return place(m) == static_cast<std::ptrdiff_t>(b.profilers.size()) && std::find(own.begin(), own.end(), m.name) == own.end();
  });
  return all;
}

target_run run_under(const build_output& built, const reference& ref, int64_t calls, const std::vector<std::string>& wrapper,
                     const std::filesystem::path& scratch, double timeout_seconds, const std::atomic<bool>* cancel) {
  const stopwatch watch(timeout_seconds);
  target_run result;
  const auto conclude = [&](const std::string& problem) {
    result.problem = problem;
    result.completed = problem.empty();
    result.seconds = watch.elapsed();
    return result;
  };
  runner_options run;
  run.wrapper = wrapper;
  run.scratch = scratch;
  run.cancel = cancel;
  run.start_seconds = timeout_seconds;
  run.first_call_seconds = std::max(1.0, timeout_seconds / 2); // the module's own time: one that sleeps must not take the budget twice
  auto runner = runner_process::start(built, ref, run);
  if (!runner) {
    result.out = runner.error().hint;
    return conclude(runner.error().message);
  }
  const auto lease = lease_device(built.device);
  auto called = runner->profile(0, 1, calls, std::max(1.0, watch.left()));
  const auto ended = called ? runner->finish(exit_seconds) : std::string();
  result.out = runner->output();
  return conclude(called ? ended : called.error().message);
}

bool looks_at_calls(const collect_manifest& m) {
  return std::any_of(m.passes.begin(), m.passes.end(), [&](const auto& pass) { return !pass.whole_run && pass.metrics.count(m.time) != 0; });
}

/// A module that launches a kernel for each of the task's outputs, whatever the task.
candidate control_module(const tensor_layout& outputs, const backend& b, int index) {
  const auto where = b.on_device() ? b.torch_device + ":" + std::to_string(index) : "cpu";
  candidate c;
  c.language = language_name::triton;
  c.source = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, *args, **named):\n        super().__init__()\n\n"
             "    def forward(self, *args):\n        return [\n";
  for (const auto& output : outputs.specs) {
    const auto type = output.dtype == dtype::boolean ? "bool" : json(output.dtype).get<std::string>();
    c.source += "            torch.full(" + json(output.shape).dump() + ", 1, dtype=torch." + type + ", device='" + where + "'),\n";
  }
  c.source += "        ]\n";
  return c;
}

} // namespace

expected<seen_call> see_call(const build_output& built, reference& ref, const std::vector<json>& manifests, const std::atomic<bool>* cancel) {
  auto b = find_backend(built.device.backend);
  if (!b) return fail(b.error());
  if (auto filled = filled_slots(ref); !filled) return fail(filled.error());
  seen_call seen;
  for (const auto& m : tools_of(*b, manifests, nullptr)) {
    if (!looks_at_calls(m) || !probe_manifest(m).found) continue;
    if (cancel && cancel->load()) return fail(ec::interrupted, "profiling was interrupted");
    manifest_request request;
    request.default_metrics = false;
    request.extra_metrics = {m.time};
    request.max_launches = most_launches;
    request.max_seconds = look_seconds;
    request.warmup_calls = calls_before;
    source_result found;
    collect_by_manifest(m, request,
                        [&](const std::vector<std::string>& wrapper, const std::filesystem::path& scratch, double seconds) {
                          return run_under(built, ref, request.calls, wrapper, scratch, seconds, cancel);
                        },
                        found);
    seen.kernels = std::move(found.kernels);
    seen.cut = found.cut;
    seen.device_seconds = found.device_seconds;
    seen.missing.insert(seen.missing.end(), found.missing.begin(), found.missing.end());
    if (!seen.kernels.empty()) break;
  }
  return seen;
}

expected<bool> sees_calls(const build_output& built, reference& ref, const std::vector<json>& manifests, const std::atomic<bool>* cancel) {
  auto b = find_backend(built.device.backend);
  if (!b) return fail(b.error());
  auto key = built.device.text();
  bool possible = false;
  for (const auto& m : tools_of(*b, manifests, nullptr)) {
    key += " " + m.name;
    possible = possible || looks_at_calls(m);
  }
  static std::mutex lock;
  static std::map<std::string, int> failures; ///< tries: never again; -1: it works
  {
    const std::lock_guard guard(lock);
    if (!possible || failures[key] >= tries) return false;
    if (failures[key] < 0) return true;
  }
  build_options options;
  options.device = built.device;
  options.cancel = cancel;
  auto control = build_candidate(control_module(ref.outputs_layout(), *b, built.device.index), options);
  auto seen = control ? see_call(*control, ref, manifests, cancel) : expected<seen_call>(fail(control.error()));
  if (!seen && seen.error().code == ec::interrupted) return fail(seen.error());
  const bool works = seen && !seen->kernels.empty();
  const std::lock_guard guard(lock);
  if (works) failures[key] = -1;
  else if (failures[key] >= 0) ++failures[key];
  return works;
}

/// On a CPU our own adapters know their names; what they do not know may be a registered tool's.
static expected<void> check_cpu_names(const std::vector<std::string>& names, const std::vector<json>& manifests) {
  const auto tools = manifests_for("cpu", manifests);
  for (const auto& name : names) {
    auto known = check_metric_names({name});
    if (known) continue;
    const bool by_tool = std::any_of(tools.begin(), tools.end(), [&](const auto& m) {
      const auto& more = m.names.more;
      return m.default_metrics().count(name) != 0 || std::find(more.begin(), more.end(), name) != more.end() ||
             (!m.lists.empty() && probe_manifest(m).found && check_metric_names(m, {name}));
    });
    if (!by_tool) return fail(known.error());
  }
  return {};
}

expected<void> check_metric_names(const device_choice& device, const std::vector<std::string>& names, const std::vector<json>& manifests) {
  if (names.empty()) return {};
  auto b = find_backend(device.backend);
  if (!b) return fail(b.error());
  if (!device.on_device()) return check_cpu_names(names, manifests);
  std::optional<error> refused;
  for (const auto& m : tools_of(*b, manifests, nullptr)) {
    if (!probe_manifest(m).found) continue;
    auto known = check_metric_names(m, names);
    if (known || known.error().code == ec::tool_failed) return {};
    if (!refused) refused = known.error();
  }
  if (refused) return fail(*refused);
  return {};
}

expected<profile> collect_on_device(const task& t, const candidate& c, const build_output& built, reference& ref, const timing& time,
                                    const machine_limits* limits, const collect_options& options) {
  auto b = find_backend(built.device.backend);
  if (!b) return fail(b.error());
  if (auto known = check_metric_names(built.device, options.extra_metrics, options.manifests); !known) return fail(known.error());
  const stopwatch watch(std::max(options.max_seconds, least_device_seconds));
  source_result found;
  timer_metrics(t, time, limits, found, built.tf32);
  if (auto filled = filled_slots(ref); !filled) return fail(filled.error());
  std::vector<std::string> absent;
  bool collected = false;
  const auto cancelled = [&] { return options.cancel && options.cancel->load(); };
  for (const auto& m : tools_of(*b, options.manifests, &found.missing)) {
    if (cancelled()) return fail(ec::interrupted, "profiling was interrupted");
    if (!probe_manifest(m).found) {
      absent.push_back(m.name + " is not installed");
      continue;
    }
    if (options.progress) options.progress(m.name);
    manifest_request request;
    request.extra_metrics = options.extra_metrics;
    request.default_metrics = options.default_metrics;
    request.max_seconds = std::max(1.0, watch.left());
    request.spare_passes = options.max_seconds >= spare_seconds;
    request.warmup_calls = calls_before;
    request.progress = options.progress;
    request.stopped = cancelled;
    if (!options.allow_torch) request.own_kernels = jit_functions(c.source);
    collect_by_manifest(m, request,
                        [&](const std::vector<std::string>& wrapper, const std::filesystem::path& scratch, double seconds) {
                          return run_under(built, ref, request.calls, wrapper, scratch, seconds, options.cancel);
                        },
                        found);
    collected = true;
  }
  if (cancelled()) return fail(ec::interrupted, "profiling was interrupted");
  if (!collected && !absent.empty()) found.missing.push_back("no counters: " + join(absent, ", "));

  profile p;
  p.candidate = c.id();
  p.binary = built.binary_hash;
  p.backend = built.device.backend;
  if (limits) p.device = limits->cpu;
  p.time = time;
  for (auto& m : found.metrics)
    if (std::isfinite(m.value)) p.metrics.push_back(std::move(m));
  p.notes = std::move(found.notes);
  p.told = std::move(found.told);
  p.kernels = std::move(found.kernels);
  p.cut = found.cut;
  p.device_seconds = found.device_seconds;
  for (auto& line : found.missing)
    if (std::find(p.missing.begin(), p.missing.end(), line) == p.missing.end()) p.missing.push_back(std::move(line));
  p.seconds = watch.elapsed();
  return p;
}

} // namespace pragma
