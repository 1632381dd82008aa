// The sources of metrics that collect() asks one after the other; internal to profilers/. Each appends what it found and
// one line to `missing` for what it could not: a source never fails the profile.
#pragma once

#include "execution/build.hpp"
#include "kernels/candidate.hpp"
#include "execution/runner_process.hpp"
#include "profilers/collect.hpp"
#include "profilers/formats.hpp"

#include <chrono>

namespace pragma {

/// Name under which build_candidate() compiles the source; debug information and remarks carry it.
inline constexpr const char* candidate_file_name = "candidate.cpp";

struct source_result {
  std::vector<metric> metrics;
  std::vector<remark> remarks;
  std::vector<tool_note> notes;       ///< of tools that only a manifest describes (by_manifest.hpp)
  std::vector<std::string> kernels;   ///< that a call launched, by such a tool; see profile::kernels
  bool cut = false;                   ///< a call launched more than that tool looked at
  double device_seconds = 0;          ///< of one call, by the same tool
  std::vector<std::string> missing;
  std::vector<told_bottleneck> told;  ///< by the manifests' rules
};

/// The budget that all sources share.
class stopwatch {
public:
  explicit stopwatch(double budget) : budget_(budget), start_(std::chrono::steady_clock::now()) {}
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double left() const { return budget_ - elapsed(); }
  double budget() const { return budget_; }

private:
  double budget_;
  std::chrono::steady_clock::time_point start_;
};

/// What every source needs to know. All references outlive the call.
struct collect_context {
  const task& the_task;
  const candidate& the_candidate;
  const build_output& built;
  reference& ref;
  const timing& time;
  const cpu_facts& facts;
  const collect_options& options;
  const stopwatch& watch;
};

/// collect.cpp: what the times and the task's bytes and FLOPs give.
void timer_metrics(const task& t, const timing& time, const machine_limits* limits, source_result& out, bool tf32 = false);

/// cpu_manifests.cpp: what tools that only a manifest describes measure of a candidate on the CPU.
void manifest_metrics(const collect_context& context, source_result& out);

/// device_collect.cpp: a candidate on a device, with the tools of its backend.
expected<profile> collect_on_device(const task& t, const candidate& c, const build_output& built, reference& ref, const timing& time,
                                    const machine_limits* limits, const collect_options& options);

// perf.cpp
std::string perf_version();
/// Why perf cannot count hardware events here; empty when it can.
std::string perf_obstacle(const cpu_facts& facts);
/// Names that perf knows here beyond our default ones; empty without perf.
std::vector<std::string> perf_events();

// valgrind.cpp
std::string valgrind_version();
/// OpenMP's entry points: what they cost is the work of the loop body inside, which is counted there.
bool starts_threads(const std::string& function);
struct callgrind_run {
  formats::callgrind_output counts;
  build_output twin;
  bool same_code = false;   ///< the twin has the measured binary's instructions (only -g was added): addresses agree
};
/// One call of the twin under callgrind; nothing when it could not be had (then `missing` says why).
/// `with_lines`: the candidate built with its own flags and -g, used as the twin where valgrind can run it.
std::optional<callgrind_run> callgrind_metrics(const collect_context& context, const build_output& with_lines, source_result& out);

// hot_loop.cpp
std::string objdump_version();
expected<std::vector<formats::code_function>> disassemble(const build_output& built, double wall_seconds);
void hot_loop_metrics(const formats::hot_loop& loop, source_result& out);
/// Hottest first, by callgrind's counts where there are some.
std::vector<formats::hot_loop> find_loops(const std::vector<formats::code_function>& functions, const std::optional<callgrind_run>& run);

// mca.cpp
std::string llvm_mca_program();
std::string llvm_mca_version();
void mca_metrics(const formats::hot_loop& loop, const cpu_facts& facts, double wall_seconds, source_result& out);

// remarks.cpp
void remark_metrics(const build_output& with_remarks, source_result& out);

} // namespace pragma
