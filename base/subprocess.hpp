// The one subprocess runner. run_process() starts a program in its own session, feeds it, collects bounded output,
// enforces limits and kills the whole process group on timeout. child_process is the long-lived variant
// (reference, candidate runner). Used by kernels, profilers and llm; sandboxing is added through before_exec.
#pragma once

#include "base/error.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace pragma {

/// Zero means "no limit". Applied in the child with setrlimit, after fork.
struct process_limits {
  double wall_seconds = 0;        ///< enforced by the parent: SIGKILL to the process group
  uint64_t cpu_seconds = 0;       ///< RLIMIT_CPU
  uint64_t memory_bytes = 0;      ///< RLIMIT_AS
  uint64_t file_bytes = 0;        ///< RLIMIT_FSIZE
  uint64_t processes = 0;         ///< RLIMIT_NPROC (per user; set it together with a uid of its own)
  uint64_t open_files = 0;        ///< RLIMIT_NOFILE
};

struct process_spec {
  std::vector<std::string> argv;                          ///< argv[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> env;   ///< added to (or, with clear_env, the whole of) the environment
  bool clear_env = false;
  std::string cwd;
  std::string stdin_data;                                 ///< written to stdin, which is then closed
  size_t max_output = 1 << 20;                            ///< bytes kept of stdout and of stderr, each; the rest is drained and dropped
  process_limits limits;
  std::vector<std::pair<int, int>> inherit_fds;           ///< {fd here, fd number in the child}; all others are close-on-exec
  std::vector<int> cpus;                                  ///< sched_setaffinity; empty = inherited
  std::function<bool()> before_exec;                      ///< runs in the child just before exec; async-signal-safe only; false aborts
  int exec_fd = -1;                                       ///< if >= 0: execveat(exec_fd, "", AT_EMPTY_PATH) with argv, instead of a path
  std::function<void(std::string_view)> on_stdout;        ///< called with each chunk as it arrives (streaming); may be empty; what it takes is no part of limits.wall_seconds
  const std::atomic<bool>* cancel = nullptr;              ///< when it turns true the process group is killed
};

struct process_result {
  int exit_code = -1;             ///< -1 when it was ended by a signal
  int signal = 0;
  bool timed_out = false;
  bool cancelled = false;
  bool output_truncated = false;
  bool memory_was_short = false;  ///< while it ran the kernel killed some process, one of its own perhaps, since the machine had no memory left (run_process())
  bool out_of_memory = false;     ///< the kernel killed it, or another process meanwhile, since the machine (or its container) had no memory left: then SIGKILL is not its doing
  std::string out, err;
  double wall_seconds = 0, cpu_seconds = 0;
  uint64_t max_rss_bytes = 0;
  bool ok() const { return exit_code == 0 && !timed_out && !cancelled; }
};

/// Runs to the end. Fails with not_found (no such program), io_error (pipe, exec), busy (the system has no process or no memory for one, which it was
/// asked for several times, within some two seconds).
expected<process_result> run_process(const process_spec& spec);

/// A running child with pipes to its stdin, from its stdout and (captured, bounded) stderr.
/// Moves only; the destructor kills the process group and reaps it. What a child that ended by itself left in its group is killed when
/// its end is noticed (alive(), kill()).
class child_process {
public:
  /// Fails as run_process().
  static expected<child_process> start(const process_spec& spec);
  child_process(child_process&&) noexcept;
  child_process& operator=(child_process&&) noexcept;
  ~child_process();

  pid_t pid() const { return pid_; }
  int stdin_fd() const { return in_; }
  int stdout_fd() const { return out_; }

  /// Writes all bytes. io_error when the child has closed its end. SIGPIPE never reaches the caller.
  expected<void> write_all(const void* data, size_t size);
  /// Reads exactly `size` bytes from stdout. timeout when not there in time; candidate_failed on end of file.
  expected<void> read_exact(void* data, size_t size, double timeout_seconds);
  /// Reads up to and without '\n' (at most `max_bytes`, else limit_exceeded).
  expected<std::string> read_line(double timeout_seconds, size_t max_bytes = 64u << 20);

  /// Captured stderr so far (bounded by max_output; the head is kept).
  std::string stderr_text();
  /// True while it has not been reaped.
  bool alive();
  /// Kills the process group with SIGKILL and reaps; returns what is known of its end. Idempotent.
  process_result kill();
  /// Sends a signal to the process group.
  void signal(int number);
  /// Waits until the process is stopped (after SIGSTOP) or dead; false on timeout.
  bool wait_stopped(double timeout_seconds);

private:
  child_process() = default;
  void drain_stderr();
  /// Waits for at least one byte; candidate_failed when the other end is closed.
  expected<size_t> read_some(char* data, size_t size, std::chrono::steady_clock::time_point start, double timeout_seconds);
  void reap(bool block);
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  bool reaped_ = false, killed_ = false; ///< killed: by us
  uint64_t out_of_memory_before_ = 0;    ///< how many processes the machine had killed for it
  int status_ = 0;
  size_t max_output_ = 1 << 20;
  std::string err_text_, line_buffer_;
};

/// Full path of a program in PATH, or empty.
std::string find_program(const std::string& name);

/// Text for people: "exit code 1", "killed by SIGSEGV (segmentation fault)", "timed out after 10 s".
std::string describe_end(const process_result& result, double limit_seconds = 0);

} // namespace pragma
