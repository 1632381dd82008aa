#include "execution/contention.hpp"

#include "base/text.hpp"
#include "execution/cpu_places.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace pragma {

namespace {

std::string read_small(int folder, const char* path) {
  const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

/// The `index`-th number (from 0) of blank-separated words; 0 when there is none.
double word_as_number(std::string_view line, int index) {
  size_t at = 0;
  for (int i = 0;; ++i) {
    at = line.find_first_not_of(' ', at);
    if (at == std::string_view::npos) return 0;
    const auto end = std::min(line.find_first_of(" \n", at), line.size());
    if (i == index) {
      uint64_t value = 0;
      std::from_chars(line.data() + at, line.data() + end, value);
      return static_cast<double>(value);
    }
    at = end;
  }
}

// cpuN user nice system idle iowait irq softirq steal: proc(5)
constexpr int busy_columns[] = {1, 2, 3, 6, 7, 8}, steal_column = 8;

/// f(number, line) for each line of a CPU; number -1: of all together.
template <class F> void each_cpu_line(std::string_view proc_stat, F&& f) {
  size_t at = 0;
  while (at < proc_stat.size() && proc_stat.substr(at, 3) == "cpu") {
    const auto end = std::min(proc_stat.find('\n', at), proc_stat.size());
    const auto line = proc_stat.substr(at, end - at);
    at = end + 1;
    int number = -1;
    std::from_chars(line.data() + 3, line.data() + line.size(), number);
    f(number, line);
  }
}

std::vector<int> own_cpus() {
  std::vector<int> cpus;
  for (int size = 1024; size <= 1 << 16; size *= 2) { // a machine may have more CPUs than a cpu_set_t holds
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(size));
    const auto bytes = CPU_ALLOC_SIZE(static_cast<size_t>(size));
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    if (known)
      for (int cpu = 0; cpu < size; ++cpu)
        if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (known) break;
  }
  return cpus;
}

void move_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const auto size = static_cast<size_t>(std::max(1024, *std::max_element(cpus.begin(), cpus.end()) + 1));
  cpu_set_t* set = CPU_ALLOC(size);
  const auto bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, set);
  for (int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  sched_setaffinity(0, bytes, set); // a refusal costs accuracy only
  CPU_FREE(set);
}

} // namespace

double run_delay_seconds(pid_t pid) {
  if (pid <= 0) return 0;
  const auto folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (!tasks) return 0;
  double nanoseconds = 0;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    nanoseconds += word_as_number(read_small(dirfd(tasks), (std::string(entry->d_name) + "/schedstat").c_str()), 1);
  }
  closedir(tasks);
  return nanoseconds * 1e-9;
}

double cpu_seconds(pid_t pid) {
  clockid_t clock;
  timespec time{};
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double session_cpu_seconds(pid_t leader) {
  constexpr int session_column = 3, waited_user_column = 13; // after "pid (comm) ": state ppid pgrp session ... utime stime cutime cstime: proc(5)
  DIR* processes = leader > 0 ? opendir("/proc") : nullptr;
  if (!processes) return -1;
  double seconds = 0;
  bool found = false;
  while (const dirent* entry = readdir(processes)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const auto text = read_small(dirfd(processes), (std::string(entry->d_name) + "/stat").c_str());
    const auto name_end = text.rfind(") ");
    if (name_end == std::string::npos) continue;
    const auto line = std::string_view(text).substr(name_end + 2);
    if (word_as_number(line, session_column) != static_cast<double>(leader)) continue;
    const double own = cpu_seconds(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
    if (own < 0) continue;
    found = true;
    seconds += own + (word_as_number(line, waited_user_column) + word_as_number(line, waited_user_column + 1)) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  closedir(processes);
  return found ? seconds : -1;
}

double steal_seconds_in(std::string_view proc_stat, const std::vector<int>& cpus) {
  double ticks = 0;
  each_cpu_line(proc_stat, [&](int number, std::string_view line) {
    const bool wanted = cpus.empty() ? number < 0 : number >= 0 && std::find(cpus.begin(), cpus.end(), number) != cpus.end();
    if (wanted) ticks += word_as_number(line, steal_column);
  });
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double steal_seconds(const std::vector<int>& cpus) { return steal_seconds_in(read_small(AT_FDCWD, "/proc/stat"), cpus); }

double machine_busy_seconds_in(std::string_view proc_stat) {
  double ticks = 0, cpus = 0;
  each_cpu_line(proc_stat, [&](int number, std::string_view line) {
    if (number >= 0) ++cpus;
    else
      for (int column : busy_columns) ticks += word_as_number(line, column);
  });
  return cpus > 0 ? ticks / cpus / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

namespace {
constexpr double quarter = 0.25;
}

double most_others(int threads) {
  constexpr double where_all_are_needed = 0.03;
  if (threads <= 1) return quarter;
  const double idle = 1 - std::min(1.0, threads / static_cast<double>(std::max(1u, std::thread::hardware_concurrency())));
  return std::min(quarter, where_all_are_needed + idle / 2);
}

double most_others_of_a_device(unsigned processors) {
  constexpr double left = 4;
  return std::max(quarter, 1 - std::max(quarter, left / std::max(1u, processors)));
}
double most_others_of_a_device() { return most_others_of_a_device(static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN))); }

int tasks_at_once(double most, unsigned processors, int threads) { return 1 + static_cast<int>(most * processors / std::max(1, threads)); }

std::string of_others(double share) { return "other processes used " + format_number(100 * share, 0) + "% of this machine, which shifts a ratio"; }

others_watch::others_watch(std::vector<pid_t> ours, double used)
    : ours_(std::move(ours)), start_(taken() - used / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN))) {}

double others_watch::taken() const {
  const auto of = [](int who) {
    rusage use{};
    getrusage(who, &use);
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  double own = of(RUSAGE_SELF) + of(RUSAGE_CHILDREN);
  for (const auto pid : ours_) own += std::max(0.0, cpu_seconds(pid));
  return machine_busy_seconds_in(read_small(AT_FDCWD, "/proc/stat")) - own / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
}

double others_watch::seconds() { return most_ = std::max(most_, taken() - start_); }

stay_on::stay_on(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  before_ = own_cpus();
  move_to(cpus);
}
stay_on::~stay_on() { move_to(before_); }

std::vector<int> measuring_cpus(int threads) {
  return choose_cpus(places_of(own_cpus()), static_cast<size_t>(std::max(threads, 1)));
}

int measuring_cores() { return static_cast<int>(cores_of_one_node(places_of(own_cpus()))); }

} // namespace pragma
