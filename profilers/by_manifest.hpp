// Collection with a tool that only its manifest describes: the verified candidate runs once more under the tool, and what the tool left
// is read as the manifest says. Used for devices (ncu, rocprofv3, msprof, and what users register); a profiler more needs no code.
#pragma once

#include "diagnosis/finding.hpp"
#include "profilers/launches.hpp"
#include "profilers/sources.hpp"

namespace pragma {

/// What a run of the candidate under a profiler came to.
struct target_run {
  bool completed = false;             ///< it ended by itself, in time
  std::string out, err;               ///< of profiler and candidate together, bounded
  std::string problem;                ///< why it did not complete: "timed out after 30 s"
  double seconds = 0;
};

/// Runs the verified candidate once more under `wrapper` (the profiler and its arguments, before the candidate's own command line) and
/// returns when it ended. `scratch` is the one folder that both may write. The caller supplies the sandbox.
using run_target = std::function<target_run(const std::vector<std::string>& wrapper, const std::filesystem::path& scratch, double timeout_seconds)>;

struct manifest_request {
  std::vector<std::string> extra_metrics;    ///< by the tool's own names, checked before (check_metric_names)
  bool default_metrics = true;
  std::vector<std::string> own_kernels;      ///< beginnings of the candidate's names: a tool that sees the whole run sees the runner's, too. Empty: all count
  int64_t calls = 1;                         ///< calls of the candidate while the tool looks; counts are divided by it
  int64_t warmup_calls = 0;                  ///< calls before; tools that see the whole run count them too (collect_pass::whole_run)
  int max_launches = 64;                     ///< of kernels, for tools that can be told; more are not profiled, and that is said
  double max_seconds = 60;                   ///< for all passes together
  bool spare_passes = true;                  ///< also those that a manifest marks with "spare_time", as long as half of that is left
  std::function<void(const std::string&)> progress;
  std::function<bool()> stopped;             ///< true: no further pass
};

/// Appends metrics (the tool's own names, measured), the tool's notes, and one line to `missing` for what could not be had.
/// Never fails: without the tool or the permission, the profile goes on with times only.
void collect_by_manifest(const collect_manifest& m, const manifest_request& request, const run_target& run, source_result& out);

struct probe_result {
  bool found = false;
  std::string program, version;       ///< full path; empty version: it printed none
  std::string obstacle, remedy;       ///< why it cannot measure here, as far as that can be seen without a run
};
/// Looks for the program, asks its version (once a process) and applies the manifest's checks.
probe_result probe_manifest(const collect_manifest& m);
/// For `pragma doctor`: what probe_manifest() found, with `enables` from the default metrics.
tool_status manifest_status(const collect_manifest& m);

/// invalid_argument: a name that neither the defaults nor the tool's own lists (the manifest's catalogue, asked once a process) have, with
/// the nearest ones. tool_failed: there are lists, but none could be read.
expected<void> check_metric_names(const collect_manifest& m, const std::vector<std::string>& names);

/// Every shipped manifest that collects on `backend`, in order of name; `registered` (users' manifests, as JSON) come after them and replace
/// those of the same name. A manifest that cannot be used is a line in `problems`.
std::vector<collect_manifest> manifests_for(const std::string& backend, const std::vector<json>& registered = {}, std::vector<std::string>* problems = nullptr);

/// Metrics that the rules of those manifests ask for after findings of theirs ("ask"), each once: the tool's own further metrics, which
/// metrics_to_ask() cannot know. `backend` and `registered` as for manifests_for().
std::vector<std::string> asked_by_rules(const std::vector<finding>& findings, const std::string& backend, const std::vector<json>& registered = {});

} // namespace pragma
