// The sources of metrics that collect() asks one after the other; internal to profilers/. Each appends what it found and
// one line to `missing` for what it could not: a source never fails the profile.
#pragma once

#include "execution/build.hpp"
#include "kernels/candidate.hpp"
#include "execution/runner_process.hpp"
#include "profilers/collect.hpp"
#include "profilers/formats.hpp"

#include <array>
#include <chrono>
#include <map>

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
  std::vector<loop_cost> loops;       ///< where the time goes, the most first
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
void timer_metrics(const task& t, const timing& time, const machine_limits* limits, source_result& out, tf32_use tf32 = tf32_use::none);

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
struct disassembled {
  std::vector<formats::code_function> functions; ///< with code of the candidate
  std::map<uint64_t, std::string> names;         ///< of all functions in the executable, by their first address
};
expected<disassembled> disassemble(const build_output& built, double wall_seconds);
void hot_loop_metrics(const formats::hot_loop& loop, source_result& out);
/// Hottest first, by callgrind's counts where there are some.
std::vector<formats::hot_loop> find_loops(const std::vector<formats::code_function>& functions, const std::optional<callgrind_run>& run);
/// Where callgrind ran a twin for other instructions (it knows no AVX-512): how often each loop's body runs in a call, from the work that the twin's loops of the same line did.
/// Vectors of another width take another number of trips for it. `loops`: with their shares of the time, by which several loops of a line divide its work.
void trips_by_twin(std::vector<formats::hot_loop>& loops, const std::vector<formats::code_function>& twin, const std::map<uint64_t, double>& executed);

// mca.cpp
std::string llvm_mca_program();
std::string llvm_mca_version();
struct modelled_loop {
  formats::mca_output figures;
  std::string as;           ///< the scheduling model's processor where it is not this one; else empty
};
/// What llvm-mca says of a loop; not_found without the program, tool_failed with what was tried.
expected<modelled_loop> model_loop(const formats::hot_loop& loop, const cpu_facts& facts, double wall_seconds);
void mca_metrics(const formats::hot_loop& loop, const modelled_loop& modelled, source_result& out);
/// A loop as diagnosis/ reads it. `total_instructions`: of the call, by callgrind; 0 = unknown.
loop_cost cost_of(const formats::hot_loop& loop, const modelled_loop* modelled, double total_instructions, bool same_code);

// sampling.cpp
/// The registers of a sample, as the next instruction finds them: ax, bx, cx, dx, si, di, bp, sp, r8 to r15. x86-64 only.
struct sampled_registers {
  uint64_t address = 0;         ///< of that instruction
  std::array<uint64_t, 16> values{};
};
/// Where the candidate's main thread was when a timer of its CPU time went off.
struct time_samples {
  std::map<uint64_t, int> at;   ///< by instruction address
  std::vector<sampled_registers> registers;
  int count = 0;                ///< in user mode
  double sampled_seconds = 0;   ///< of CPU time that they stand for
  double cpu_seconds = 0;       ///< of the thread while they were taken; the rest was spent in the operating system
};
/// `built`: with line numbers, and the measured binary's instructions. Never fails the profile: `missing` says why there is nothing.
std::optional<time_samples> take_samples(const collect_context& context, const build_output& built, source_result& out);
/// Puts the samples beside the loops and sorts those by them; what fell elsewhere becomes samples.* metrics.
void attribute_samples(const time_samples& samples, const disassembled& code, std::vector<formats::hot_loop>& loops, source_result& out);

// addresses.cpp
/// Accesses that cross a cache line, that alias at 4 KiB, that go to another page at each trip: samples.* metrics of this loop.
void address_metrics(const time_samples& samples, const formats::hot_loop& loop, source_result& out);
/// Loads of a trip that are wider than the stores just before them to the same place, so that the core cannot forward the stored bytes.
int blocked_loads(const formats::hot_loop& loop);
/// Loads whose address follows, in the trip after, from what they loaded: none of them begins before the one before it is done. What goes through memory or a function in between is not followed.
int chained_loads(const formats::hot_loop& loop);
/// Numbers in memory that a trip changes at places which loaded values choose (counters, sums by an index), and in how many tables they lie, by their addresses' constant part.
struct updates_by_value {
  int updates = 0, tables = 0;
};
updates_by_value updates_of(const formats::hot_loop& loop);

// remarks.cpp
void remark_metrics(const build_output& with_remarks, source_result& out);

} // namespace pragma
