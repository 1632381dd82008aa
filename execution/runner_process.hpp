// A running candidate: the sandboxed executable that build_candidate() made, with the shared memory mapped, waiting for
// commands on a pipe. Used by verify and timing; the checker keeps seeds, expected outputs, clock and verdict.
#pragma once

#include "execution/build.hpp"
#include "execution/run_conditions.hpp"
#include "reference/reference.hpp"

#include <functional>

namespace pragma {

/// What a call cost, from the moment at which the candidate may run until it says "done".
struct call_cost {
  double seconds = 0;      ///< by our clock
  double cpu_seconds = 0;  ///< of all its threads; negative when it cannot be read
};

/// Something done to a candidate in the middle of a call, while all its threads stand still.
struct interruption {
  double after_seconds = 0;        ///< of the call
  std::function<void()> act;       ///< not called when the call is over by then
};

struct runner_options {
  int threads = 1;
  std::vector<int> cpus;
  uint64_t scratch_memory_bytes = 4ull << 30; ///< address space beyond the shared tensors
  uint64_t cpu_seconds = 600;
  std::vector<std::string> wrapper;           ///< profilers: program and arguments before the executable (valgrind ...)
  double start_seconds = 0;                   ///< limit until a Python candidate's process has started Torch; 0: the default
  double first_call_seconds = 0;              ///< limit from there until it is ready: its module, and a first call; 0: the default
  std::filesystem::path scratch;              ///< with a wrapper: the folder that it may write
  run_conditions conditions;                  ///< C++ only: an experiment of the profilers
  const std::atomic<bool>* cancel = nullptr;  ///< when true, whatever is waited for ends as interrupted, and the process with it
};

/// What a candidate gets to see, where there is no reference process (tests, profilers). The descriptors must be sealed
/// against new writable mappings (F_SEAL_FUTURE_WRITE); -1 where a layout is empty.
struct runner_memory {
  int params_fd = -1, inputs_fd = -1;
  tensor_layout params, inputs, outputs;
  std::filesystem::path task;  ///< its file, for candidates in Python: constants among the inputs, arguments of the constructor
};

/// What is copied to the device directly before a single call, in the same command.
enum class copied {
  nothing,
  taken_over, ///< the call's inputs: no thread sees them earlier if the process stands still while they are made
  elsewhere,  ///< the same bytes, to memory that nothing reads: the device is in the same state, and the inputs are those of before
};

class runner_process {
public:
  /// Starts the candidate with the reference's inputs and parameters read-only and its own outputs memory.
  /// candidate_failed when it dies before it says "ready" (a constructor crashed, a forbidden system call); tool_failed when Torch or the
  /// device fails in a process in which nothing of the candidate has run yet.
  static expected<runner_process> start(const build_output& built, const reference& ref, const runner_options& options);
  static expected<runner_process> start(const build_output& built, const runner_memory& memory, const runner_options& options);
  /// Python only: a process for a candidate that is not written yet. `shell` is a build without its module (python_shell()); start() with the
  /// build that was made in it goes on from there, and need not wait for Torch. Returns at once.
  static expected<runner_process> prepare(const build_output& shell, const reference& ref, const runner_options& options);
  runner_process(runner_process&&) noexcept;
  runner_process& operator=(runner_process&&) noexcept;
  ~runner_process();

  /// Calls the kernel `calls` times, cycling through slots first, first+1, ... first+count-1. Returns when the candidate
  /// says that it is done. candidate_failed: crashed (with the signal's name and what it touched), wrote to the control
  /// channel by itself, or left another rounding mode, FTZ or processor flag behind; timeout: killed.
  /// A candidate in C++ runs in calls only: before, between and after them all its threads are stopped, so that what is put into its
  /// memory there (new inputs) is seen by nobody before the next call's clock runs.
  expected<void> call(int first_slot, int slot_count, int64_t calls, double timeout_seconds);
  expected<void> call(int first_slot, int slot_count, int64_t calls, double timeout_seconds, const interruption& inside);
  /// Of the latest call.
  const call_cost& last_call() const;
  // Candidates in Python only. Each waits for the device; errors as call().
  /// Inputs of the slots from shared memory to the device, at the same addresses there.
  expected<void> upload(int first_slot, int slot_count, double timeout_seconds);
  /// `calls` back to back: for our own clock.
  expected<void> run(int first_slot, int slot_count, int64_t calls, bool graph, double timeout_seconds);
  /// Seconds of all calls by the device's clock, each call after a flush of the last-level cache.
  expected<double> time(int first_slot, int slot_count, int64_t calls, bool graph, double timeout_seconds);
  /// A single call.
  expected<double> time_once(int slot, bool graph, copied inputs, bool flush, double timeout_seconds);
  /// Graphs of a call for each slot; false when the call cannot be captured.
  expected<bool> capture(int first_slot, int slot_count, double timeout_seconds);
  /// Results of the last calls on these slots to shared memory.
  expected<void> download(int first_slot, int slot_count, double timeout_seconds);
  /// `calls` inside the range that a profiler round the process records.
  expected<void> profile(int first_slot, int slot_count, int64_t calls, double timeout_seconds);
  /// Operators of aten that a call left to Torch, as the runner saw them: "mm:1", "add:2". Known after the first call().
  std::vector<std::string> torch_operators();

  /// Fills the outputs of all slots with a poison pattern (signalling NaNs; 0xA5 for integers and for the bytes around).
  void poison();
  /// After poison() and calls, while frozen: "wrote 12 bytes past the end of output out0", or empty. Larger overruns fault.
  std::string overrun() const;
  /// SIGSTOPs the candidate so that no thread of it can write while outputs are read; false when it does not stop. One in C++ is
  /// stopped already. The next call lets it run again.
  bool freeze();
  /// Lets a candidate in Python run between its calls; one in C++ stays stopped.
  void thaw();
  /// Outputs memory, layout as ref.outputs_layout().
  const std::byte* outputs() const;
  std::byte* outputs();
  int pid() const;
  /// stderr and stdout text of the candidate, printable, bounded.
  std::string log();
  /// Closes its commands and waits for its end, as a profiler round it needs; empty when it ended by itself, else what happened.
  std::string finish(double timeout_seconds);
  /// All that it (and a profiler round it) printed, bounded.
  std::string output();
  /// Kills it and says how it ended.
  std::string end();
  /// It can be asked for more: it lives, and at least half of the CPU time that a process may use is left, so that one that is kept
  /// through a run does not run out of it in the middle of somebody else's comparison.
  bool usable();

private:
  /// The process, without waiting for it; then, until it has made its first call.
  static expected<runner_process> launch(const build_output& built, const runner_memory& memory, const runner_options& options);
  static expected<runner_process> begin(runner_process launched, const build_output& built, const runner_options& options);
  expected<double> command(uint32_t operation, int first_slot, int slot_count, int64_t calls, uint32_t flags, double timeout_seconds, uint64_t* answer = nullptr,
                           const interruption* inside = nullptr);
  struct impl;
  explicit runner_process(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace pragma
