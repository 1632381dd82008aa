#include "base/subprocess.hpp"

#include "base/seconds.hpp"
#include "base/sigpipe.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;


struct pipe_pair {
  int read = -1, write = -1;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  static void close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  ~pipe_pair() {
    close(read);
    close(write);
  }
};

void set_limit(int resource, uint64_t value) {
  if (value == 0) return;
  const rlimit limit{value, value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

struct launched {
  pid_t pid = -1;
  int in = -1, out = -1, err = -1;
};

/// What exec wants, made before the fork: a child of a process with threads may not allocate.
struct exec_arguments {
  std::string program;
  std::vector<std::string> environment;
  std::vector<char*> argv, envp;
  cpu_set_t cpus;

  exec_arguments(const process_spec& spec, std::string found) : program(std::move(found)) {
    if (!spec.clear_env)
      for (char** e = environ; *e; ++e) {
        const std::string_view entry = *e;
        const auto key = entry.substr(0, entry.find('='));
        if (std::none_of(spec.env.begin(), spec.env.end(), [&](const auto& kv) { return kv.first == key; })) environment.emplace_back(entry);
      }
    for (const auto& [key, value] : spec.env) environment.push_back(key + "=" + value);
    for (const auto& a : spec.argv) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    for (const auto& e : environment) envp.push_back(const_cast<char*>(e.c_str()));
    envp.push_back(nullptr);
    CPU_ZERO(&cpus);
    for (int c : spec.cpus)
      if (c >= 0 && c < CPU_SETSIZE) CPU_SET(c, &cpus);
  }
};

void set_limits(const process_limits& limits) {
  set_limit(RLIMIT_CPU, limits.cpu_seconds);
  set_limit(RLIMIT_AS, limits.memory_bytes);
  set_limit(RLIMIT_FSIZE, limits.file_bytes);
  set_limit(RLIMIT_NPROC, limits.processes);
  set_limit(RLIMIT_NOFILE, limits.open_files);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

void standard_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int s = 1; s < 32; ++s) ::sigaction(s, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The child, from fork to exec: only async-signal-safe calls. Says through `status` why there is no exec.
[[noreturn]] void become(const process_spec& spec, const exec_arguments& arguments, pid_t parent, int in, int out, int err, int status) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  // The inherited descriptors may sit on numbers that others want: lift all of them out of the way first.
  int lifted[32];
  const size_t count = std::min<size_t>(spec.inherit_fds.size(), 32);
  const auto lift = [](int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 900); };
  for (size_t i = 0; i < count; ++i) lifted[i] = lift(spec.inherit_fds[i].first);
  const int exec_fd = spec.exec_fd >= 0 ? lift(spec.exec_fd) : -1;
  const int standard[] = {lift(in), lift(out), lift(err)};
  status = lift(status);
  if (status < 0 || standard[0] < 0 || standard[1] < 0 || standard[2] < 0) ::_exit(127);
  const auto give_up = [status](int code) {
    const ssize_t ignored = ::write(status, &code, sizeof code);
    (void)ignored;
    ::_exit(127);
  };
  for (int fd = 0; fd < 3; ++fd) ::dup2(standard[fd], fd);
  for (size_t i = 0; i < count; ++i)
    if (lifted[i] < 0 || ::dup2(lifted[i], spec.inherit_fds[i].second) < 0) give_up(errno);
  if (!spec.cwd.empty() && ::chdir(spec.cwd.c_str()) != 0) give_up(errno);
  if (!spec.cpus.empty()) ::sched_setaffinity(0, sizeof arguments.cpus, &arguments.cpus);
  set_limits(spec.limits);
  standard_signals();
  if (spec.before_exec && !spec.before_exec()) give_up(errno ? errno : EPERM);
  if (exec_fd >= 0) ::syscall(SYS_execveat, exec_fd, "", arguments.argv.data(), arguments.envp.data(), AT_EMPTY_PATH);
  else ::execve(arguments.program.c_str(), arguments.argv.data(), arguments.envp.data());
  give_up(errno);
  ::_exit(127);
}

constexpr int most_launches = 7;      ///< of one program while the system has no process for it
constexpr int first_pause_ms = 20;    ///< between them; doubles
constexpr int ending_tries = 100, ending_pause_ms = 2; ///< for a process whose pipes are closed

/// No process now (the user's or the machine's limit), or no memory for one.
bool passes(int why) { return why == EAGAIN || why == ENOMEM; }

tl::unexpected<error> not_started(const std::string& what, int why) {
  const auto message = what + ": " + std::strerror(why);
  if (passes(why)) return fail(ec::busy, message, "too many processes of this user, or too little memory: `ulimit -u` and `free` say what there is");
  return fail(why == ENOENT ? ec::not_found : ec::io_error, message);
}

expected<launched> launch_once(const process_spec& spec) {
  if (spec.argv.empty()) return fail(ec::internal, "run_process without a program");
  std::string program = spec.argv[0];
  if (spec.exec_fd < 0) {
    program = find_program(spec.argv[0]);
    if (program.empty()) return fail(ec::not_found, "program not found: " + spec.argv[0], "install it or give its full path");
  }
  const exec_arguments arguments(spec, std::move(program));
  pipe_pair in, out, err, status;
  if (!in.open() || !out.open() || !err.open() || !status.open())
    return fail(ec::io_error, std::string("cannot make pipes for ") + spec.argv[0] + ": " + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return not_started("cannot start " + spec.argv[0], errno);
  if (pid == 0) become(spec, arguments, parent, in.read, out.write, err.write, status.write);
  pipe_pair::close(in.read);
  pipe_pair::close(out.write);
  pipe_pair::close(err.write);
  pipe_pair::close(status.write);
  int code = 0;
  ssize_t got = 0;
  while ((got = ::read(status.read, &code, sizeof code)) < 0 && errno == EINTR) {}
  if (got == static_cast<ssize_t>(sizeof code)) {
    ::waitpid(pid, nullptr, 0);
    return not_started("cannot run " + arguments.program, code);
  }
  launched l{pid, in.write, out.read, err.read};
  in.write = out.read = err.read = -1;
  return l;
}

expected<launched> launch(const process_spec& spec) {
  for (int tries = 1;; ++tries) {
    auto started = launch_once(spec);
    const bool again = !started && started.error().code == ec::busy && tries < most_launches && !(spec.cancel && spec.cancel->load());
    if (!again) return started;
    ::poll(nullptr, 0, first_pause_ms << (tries - 1));
  }
}

/// How many processes were killed for want of memory since the machine started; 0 where the kernel does not say (before Linux 4.13).
uint64_t killed_for_memory() {
  std::ifstream file("/proc/vmstat");
  std::string key;
  for (uint64_t value = 0; file >> key >> value;)
    if (key == "oom_kill") return value;
  return 0;
}

void note_end(process_result& result, int status, const rusage& usage) {
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.cpu_seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  result.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

/// Who listens gets what was said; the seconds that he takes.
double tell(const process_spec& spec, std::string_view said) {
  const auto start = clock::now();
  if (spec.on_stdout) spec.on_stdout(said);
  return seconds_since(start);
}

} // namespace

expected<process_result> run_process(const process_spec& spec) {
  const auto start = clock::now();
  const auto killed_before = killed_for_memory();
  auto child = launch(spec);
  if (!child) return fail(child.error());
  const sigpipe_guard guard;
  process_result result;
  for (int fd : {child->in, child->out, child->err}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  size_t written = 0;
  bool killed = false, exited = false;
  int status = 0;
  rusage usage{};
  double exited_at = 0, listened = 0; // seconds; of those, in on_stdout
  char buffer[1 << 16];
  const auto take = [&](int& fd, std::string& into, bool stream) {
    while (fd >= 0) {
      const auto n = ::read(fd, buffer, sizeof buffer);
      if (n > 0) {
        if (stream) listened += tell(spec, {buffer, static_cast<size_t>(n)});
        const auto room = spec.max_output - std::min(spec.max_output, into.size());
        into.append(buffer, std::min(room, static_cast<size_t>(n)));
        if (static_cast<size_t>(n) > room) result.output_truncated = true;
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      pipe_pair::close(fd);
    }
  };
  while (true) {
    if (child->in >= 0) {
      while (written < spec.stdin_data.size()) {
        const auto n = ::write(child->in, spec.stdin_data.data() + written, spec.stdin_data.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) written = spec.stdin_data.size(); // it does not want the rest
        else written += static_cast<size_t>(n);
      }
      if (written == spec.stdin_data.size()) pipe_pair::close(child->in);
    }
    take(child->out, result.out, true);
    take(child->err, result.err, false);
    if (!exited) {
      const pid_t done = ::wait4(child->pid, &status, WNOHANG, &usage);
      if (done == child->pid) {
        exited = true;
        exited_at = seconds_since(start);
        ::kill(-child->pid, SIGKILL); // whatever it left behind in its group
      }
    }
    // A grandchild in another session may hold the pipes: the program itself is gone, do not wait for it.
    if (exited && ((child->out < 0 && child->err < 0) || seconds_since(start) - exited_at > 0.5)) break;
    const double elapsed = seconds_since(start) - listened;
    if (!killed && !exited) {
      const bool late = spec.limits.wall_seconds > 0 && elapsed > spec.limits.wall_seconds;
      const bool stop = spec.cancel && spec.cancel->load();
      if (late || stop) {
        result.timed_out = late;
        result.cancelled = stop && !late;
        killed = true;
        ::kill(-child->pid, SIGKILL);
        ::kill(child->pid, SIGKILL);
      }
    }
    pollfd fds[3];
    nfds_t count = 0;
    if (child->in >= 0) fds[count++] = {child->in, POLLOUT, 0};
    if (child->out >= 0) fds[count++] = {child->out, POLLIN, 0};
    if (child->err >= 0) fds[count++] = {child->err, POLLIN, 0};
    // With all pipes closed only the exit is awaited: poll briefly.
    ::poll(fds, count, count == 0 || exited ? 2 : 50);
  }
  pipe_pair::close(child->in);
  pipe_pair::close(child->out);
  pipe_pair::close(child->err);
  result.wall_seconds = exited_at;
  note_end(result, status, usage);
  result.out_of_memory = (result.memory_was_short = killed_for_memory() > killed_before) && result.signal == SIGKILL && !killed;
  return result;
}

expected<child_process> child_process::start(const process_spec& spec) {
  const auto killed_before = killed_for_memory();
  auto started = launch(spec);
  if (!started) return fail(started.error());
  child_process child;
  child.out_of_memory_before_ = killed_before;
  child.pid_ = started->pid;
  child.in_ = started->in;
  child.out_ = started->out;
  child.err_ = started->err;
  child.max_output_ = spec.max_output;
  for (int fd : {child.out_, child.err_}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return child;
}

child_process::child_process(child_process&& other) noexcept { *this = std::move(other); }

child_process& child_process::operator=(child_process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(reaped_, other.reaped_);
  std::swap(killed_, other.killed_);
  std::swap(out_of_memory_before_, other.out_of_memory_before_);
  std::swap(status_, other.status_);
  std::swap(max_output_, other.max_output_);
  std::swap(err_text_, other.err_text_);
  std::swap(line_buffer_, other.line_buffer_);
  return *this;
}

child_process::~child_process() {
  if (pid_ > 0) kill();
  pipe_pair::close(in_);
  pipe_pair::close(out_);
  pipe_pair::close(err_);
}

expected<void> child_process::write_all(const void* data, size_t size) {
  const sigpipe_guard guard;
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const auto n = ::write(in_, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ec::io_error, std::string("the child process no longer reads: ") + std::strerror(errno));
    at += n;
    size -= static_cast<size_t>(n);
  }
  return {};
}

expected<size_t> child_process::read_some(char* data, size_t size, std::chrono::steady_clock::time_point start, double timeout_seconds) {
  while (true) {
    const auto n = ::read(out_, data, size);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return fail(ec::candidate_failed, "the child process closed its end");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(ec::io_error, std::string("cannot read from the child process: ") + std::strerror(errno));
    const double left = timeout_seconds - seconds_since(start);
    if (left <= 0) return fail(ec::timeout, "no answer within " + std::to_string(timeout_seconds) + " s");
    pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    ::poll(fds, err_ >= 0 ? 2 : 1, static_cast<int>(std::min(left * 1000 + 1, 1000.0)));
    if (err_ >= 0 && fds[1].revents) drain_stderr();
  }
}

expected<void> child_process::read_exact(void* data, size_t size, double timeout_seconds) {
  const auto start = clock::now();
  char* at = static_cast<char*>(data);
  if (!line_buffer_.empty()) {
    const auto n = std::min(size, line_buffer_.size());
    std::memcpy(at, line_buffer_.data(), n);
    line_buffer_.erase(0, n);
    at += n;
    size -= n;
  }
  while (size > 0) {
    const auto n = read_some(at, size, start, timeout_seconds);
    if (!n) return fail(n.error());
    at += *n;
    size -= *n;
  }
  return {};
}

expected<std::string> child_process::read_line(double timeout_seconds, size_t max_bytes) {
  const auto start = clock::now();
  size_t searched = 0;
  char buffer[1 << 16];
  while (true) {
    const auto newline = line_buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      std::string line = line_buffer_.substr(0, newline);
      line_buffer_.erase(0, newline + 1);
      return line;
    }
    searched = line_buffer_.size();
    if (searched > max_bytes) return fail(ec::limit_exceeded, "a line of more than " + std::to_string(max_bytes) + " bytes");
    const auto n = read_some(buffer, sizeof buffer, start, timeout_seconds);
    if (!n) return fail(n.error());
    line_buffer_.append(buffer, *n);
  }
}

void child_process::drain_stderr() {
  char buffer[1 << 14];
  while (err_ >= 0) {
    const auto n = ::read(err_, buffer, sizeof buffer);
    if (n > 0) {
      const auto room = max_output_ - std::min(max_output_, err_text_.size());
      err_text_.append(buffer, std::min(room, static_cast<size_t>(n)));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    pipe_pair::close(err_);
  }
}

std::string child_process::stderr_text() {
  drain_stderr();
  return err_text_;
}

void child_process::reap(bool block) {
  if (reaped_ || pid_ <= 0) return;
  // Until it is reaped its number is its group's: what it left behind there is killed now, or by nobody.
  siginfo_t info{};
  int found = 0;
  while ((found = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | (block ? 0 : WNOHANG))) < 0 && errno == EINTR) {}
  if (found == 0 && info.si_pid == 0) return; // it lives
  ::kill(-pid_, SIGKILL);
  int status = 0;
  pid_t done = 0;
  while ((done = ::waitpid(pid_, &status, block ? 0 : WNOHANG)) < 0 && errno == EINTR) {}
  if (done == pid_) {
    reaped_ = true;
    status_ = status;
  } else if (done < 0) {
    reaped_ = true;
  }
}

bool child_process::alive() {
  reap(false);
  return pid_ > 0 && !reaped_;
}

process_result child_process::kill() {
  if (pid_ > 0 && !reaped_) {
    reap(false);
    for (int i = 0; i < ending_tries && !reaped_ && killed_for_memory() > out_of_memory_before_; ++i) { // its pipes close before it has ended: who killed it?
      ::poll(nullptr, 0, ending_pause_ms);
      reap(false);
    }
    if (!reaped_) {
      killed_ = true;
      ::kill(-pid_, SIGKILL);
      ::kill(pid_, SIGKILL);
      reap(true);
    }
  }
  drain_stderr();
  process_result result;
  note_end(result, status_, rusage{});
  result.out_of_memory = result.signal == SIGKILL && !killed_ && killed_for_memory() > out_of_memory_before_;
  result.err = err_text_;
  return result;
}

void child_process::signal(int number) {
  if (pid_ > 0 && !reaped_ && ::kill(-pid_, number) != 0) ::kill(pid_, number);
}

bool child_process::wait_stopped(double timeout_seconds) {
  const auto start = clock::now();
  while (pid_ > 0 && !reaped_) {
    siginfo_t info{};
    // WNOWAIT keeps an exit status for reap().
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
      if (info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED) reap(true);
      return true;
    }
    if (seconds_since(start) > timeout_seconds) return false;
    const timespec pause{0, 20000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

} // namespace pragma
