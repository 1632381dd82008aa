#include "profilers/by_manifest.hpp"

#include "base/text.hpp"
#include "kernels/device_lease.hpp"
#include "kernels/kernel_names.hpp"
#include "kernels/runner_process.hpp"
#include "profilers/running.hpp"

#include <algorithm>
#include <cmath>

namespace pragma {

namespace {

constexpr double least_seconds = 60;   ///< a profiler of a device starts Torch under it and runs each kernel many times
constexpr double spare_seconds = 8;    ///< a budget from here on also pays for a tool's own rules: one start of Torch more
constexpr double exit_seconds = 30;    ///< for writing the results after the last call

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

} // namespace

expected<void> check_metric_names(const device_choice& device, const std::vector<std::string>& names, const std::vector<json>& manifests) {
  if (names.empty()) return {};
  auto b = find_backend(device.backend);
  if (!b) return fail(b.error());
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
  const stopwatch watch(std::max(options.max_seconds, least_seconds));
  source_result found;
  timer_metrics(t, time, limits, found, built.allow_tf32);
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
    request.warmup_calls = 2; // one when its module was loaded, one before the range
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
  p.kernels = std::move(found.kernels);
  p.device_seconds = found.device_seconds;
  for (auto& line : found.missing)
    if (std::find(p.missing.begin(), p.missing.end(), line) == p.missing.end()) p.missing.push_back(std::move(line));
  p.seconds = watch.elapsed();
  return p;
}

} // namespace pragma
