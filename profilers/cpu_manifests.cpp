// Tools that only a manifest describes, on a CPU: the verified candidate runs once more under each, as it does under valgrind, and what the
// tool left is read as its manifest says. The tool sees the whole run (start, calls, end), so enough calls are made for them to outweigh the start.
#include "profilers/by_manifest.hpp"
#include "profilers/running.hpp"

#include <algorithm>

namespace pragma {

namespace {

constexpr double least_tool_seconds = 5;        ///< for a tool, whatever the others left of the budget
constexpr double called_seconds = 0.5;     ///< of calls, at the candidate's own speed
constexpr int64_t most_calls = 10'000;
constexpr double results_seconds = 30;        ///< for writing the results after the last call

target_run run_under(const collect_context& context, int64_t calls, const std::vector<std::string>& wrapper, const std::filesystem::path& scratch,
                     double timeout_seconds) {
  const stopwatch watch(timeout_seconds);
  target_run result;
  const auto conclude = [&](const std::string& problem) {
    result.problem = problem;
    result.completed = problem.empty();
    result.seconds = watch.elapsed();
    return result;
  };
  runner_options run;
  run.threads = context.options.threads;
  run.wrapper = wrapper;
  run.scratch = scratch;
  run.cancel = context.options.cancel;
  auto runner = runner_process::start(context.built, context.ref, run);
  if (!runner) {
    result.out = runner.error().hint;
    return conclude(runner.error().message);
  }
  auto called = runner->call(0, 1, calls, std::max(1.0, watch.left()));
  const auto ended = called ? runner->finish(results_seconds) : std::string();
  result.out = runner->output();
  return conclude(called ? ended : called.error().message);
}

} // namespace

void manifest_metrics(const collect_context& context, source_result& out) {
  const auto& options = context.options;
  for (const auto& m : manifests_for("cpu", options.manifests, &out.missing)) {
    if (options.cancel && options.cancel->load()) return;
    if (options.progress) options.progress(m.name);
    if (auto filled = filled_slots(context.ref); !filled) {
      out.missing.push_back(m.name + ": " + filled.error().message);
      return;
    }
    manifest_request request;
    request.default_metrics = options.default_metrics;
    for (const auto& name : options.extra_metrics)
      if (!check_metric_names({name}) && check_metric_names(m, {name})) request.extra_metrics.push_back(name); // ours are measured by our own adapters
    request.calls = std::clamp<int64_t>(static_cast<int64_t>(called_seconds / std::max(1e-9, context.time.candidate_seconds)), 1, most_calls);
    request.max_seconds = std::max(least_tool_seconds, context.watch.left());
    request.progress = options.progress;
    request.stopped = [&] { return options.cancel && options.cancel->load(); };
    collect_by_manifest(m, request,
                        [&](const std::vector<std::string>& wrapper, const std::filesystem::path& scratch, double seconds) {
                          return run_under(context, request.calls, wrapper, scratch, seconds);
                        },
                        out);
  }
}

} // namespace pragma
