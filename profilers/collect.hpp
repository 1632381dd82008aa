// The Profiler's library: metrics of one verified candidate from what this machine really has, best source first
// (perf stat with a PMU; else callgrind/cachegrind on a profiling twin, llvm-mca, vectorisation remarks, software
// events), and what timing and the task's bytes and FLOPs give. One file per tool's format: perf.cpp, valgrind.cpp, mca.cpp, remarks.cpp.
#pragma once

#include "diagnosis/profile.hpp"
#include "timing/timing.hpp"

#include <functional>

namespace pragma {

struct collect_options {
  int threads = 1;
  std::vector<std::string> extra_metrics;   ///< by name; unknown ones are an invalid_argument with the nearest valid names
  bool default_metrics = true;
  double max_seconds = 6;                   ///< budget for all tools together; slow ones (valgrind) are cut to it and say so. On a device 60 at the least
  bool allow_torch = false;                 ///< devices: Torch's kernels are the candidate's work, too
  std::vector<json> manifests;              ///< devices: profilers that the user registered, asked beside the shipped ones
  std::function<void(const std::string&)> progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Names that can be asked for on this machine, with unit, tool and how (measured, simulated, static).
struct available_metric {
  std::string name, unit, tool;
  provenance how = provenance::measured;
};
std::vector<available_metric> available_metrics();
/// invalid_argument naming the unknown one and the nearest valid ones.
expected<void> check_metric_names(const std::vector<std::string>& names);

/// The same for the tools of a device (configs/backends/). Without one of them here, names cannot be checked and pass.
expected<void> check_metric_names(const device_choice& device, const std::vector<std::string>& names, const std::vector<json>& manifests = {});

inline constexpr int most_launches = 4096;    ///< of one call, that see_call() looks at

/// One call on a device as a tool sees it that can be told when to look, from outside of the candidate's process. It is asked for nothing else, and so can
/// look at many launches.
struct seen_call {
  std::vector<std::string> kernels;         ///< names, each once; empty: none was seen
  bool cut = false;                         ///< there were more than most_launches
  double device_seconds = 0;
  std::vector<std::string> missing;         ///< why nothing was seen
};
expected<seen_call> see_call(const build_output& built, reference& ref, const std::vector<json>& manifests, const std::atomic<bool>* cancel);
/// Whether such a tool works here: it sees the kernel of a module of ours. Asked again once when it did not, then remembered. `built`: for which device.
expected<bool> sees_calls(const build_output& built, reference& ref, const std::vector<json>& manifests, const std::atomic<bool>* cancel);

/// `time` comes from time_candidate(). Never fails because a tool is missing: that is a line in profile::missing.
expected<profile> collect(const task& t, const candidate& c, const build_output& built, reference& ref, const timing& time,
                          const machine_limits* limits, const collect_options& options);

} // namespace pragma
