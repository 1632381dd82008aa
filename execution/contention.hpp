// Was other work running while we measured? Linux says how long each thread waited for a CPU although it could run
// (schedstat) and how long the hypervisor ran somebody else (steal). Used by timing; docs/measuring.md.
#pragma once

#include <string_view>
#include <sys/types.h>
#include <vector>

namespace pragma {

/// Seconds that the process's threads spent runnable but waiting for a CPU, so far. Grows only; 0 when it cannot be read.
double run_delay_seconds(pid_t pid);
/// CPU time of a whole process so far, threads that ended included; negative when it cannot be read.
double cpu_seconds(pid_t pid);
/// CPU time so far of all processes in the session of this one, which is the session's first: itself, and whatever it forked. Children
/// that ended count where their parents have waited for them (in ticks of 10 ms); negative when it cannot be read.
double session_cpu_seconds(pid_t leader);
/// Seconds that the hypervisor took from these CPUs so far (all CPUs when empty). In ticks of 10 ms.
double steal_seconds(const std::vector<int>& cpus);
/// steal_seconds() on the text of /proc/stat.
double steal_seconds_in(std::string_view proc_stat, const std::vector<int>& cpus);

/// CPU time of all processors in the text of /proc/stat, what the hypervisor took included, over their number: seconds of the whole machine. In ticks of 10 ms.
double machine_busy_seconds_in(std::string_view proc_stat);

/// Share of the machine that others may use beside a measurement with so many threads: with more it was taken under contention. Less where the threads need every processor.
double most_others(int threads);
/// The same beside a call of a device, which needs one processor of the host: others may use what leaves a quarter of this machine, and four processors of it.
double most_others_of_a_device();
/// most_others_of_a_device() on a machine of so many processors.
double most_others_of_a_device(unsigned processors);
/// Tasks of so many threads that `processors` may work on at once while one of them is measured, which may have `most` of the machine busy beside it: at least 1.
int tasks_at_once(double most, unsigned processors, int threads);
/// "other processes used 40% of this machine, which shifts a ratio"
std::string of_others(double share);

/// How much of the machine others use: what is neither this process's, nor of its children that ended, nor of `ours`, which are alive.
class others_watch {
public:
  /// `used`: seconds of a processor that a child of this process has used so far, which show when it ends.
  explicit others_watch(std::vector<pid_t> ours = {}, double used = 0);
  /// Seconds of the whole machine since the beginning; never less than at an earlier call.
  double seconds();

private:
  double taken() const;

  std::vector<pid_t> ours_;
  double start_, most_ = 0;
};

/// CPUs to measure on: `threads` of the ones we may run on, of one memory node where one has as many (execution/cpu_places.hpp).
std::vector<int> measuring_cpus(int threads);
/// What `--threads all` means: the cores of one memory node that we may run on.
int measuring_cores();

/// Moves the calling thread to `cpus` while it lives (to warm the caches that a candidate will use); does nothing when empty.
class stay_on {
public:
  explicit stay_on(const std::vector<int>& cpus);
  stay_on(const stay_on&) = delete;
  stay_on& operator=(const stay_on&) = delete;
  ~stay_on();

private:
  std::vector<int> before_;
};

} // namespace pragma
