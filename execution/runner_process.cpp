#include "execution/runner_process.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "sandbox/allocator.hpp"
#include "execution/contention.hpp"
#include "devices/device_lease.hpp"
#include "execution/output_guard.hpp"
#include "execution/python_process.hpp"
#include "execution/runner/protocol.h"
#include "sandbox/sandbox_filter.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace pragma {

namespace {

using steady = std::chrono::steady_clock;

constexpr double start_timeout_seconds = 10;       ///< constructors and the mapping of the tensors
constexpr double python_start_seconds = 150;       ///< importing Torch, waking the device, laying the tensors there; nothing of the candidate's
constexpr double first_call_seconds = 240;         ///< its module, compiling every kernel (and every configuration of an autotuner), one call
constexpr double stop_timeout_seconds = 10;        ///< for all threads to stop after SIGSTOP, on a machine with other work
constexpr const char* spin_count = "1000";         ///< of OpenMP's threads that wait, as the reference's: by default they spin for milliseconds
constexpr double death_grace_seconds = 0.2;        ///< between the end of its pipe and its exit status
constexpr auto look_round = std::chrono::milliseconds(50); ///< between two looks whether we are cancelled, or the candidate is gone
constexpr size_t max_captured = 64 << 10;          ///< bytes kept of the candidate's stdout and stderr
constexpr uint64_t address_space_slack = 256ull << 20; ///< code, stacks of a few threads, the reservation's guard pages
constexpr uint64_t stack_per_thread = 72ull << 20; ///< 8 MiB of stack and a 64 MiB malloc arena, address space only
constexpr uint64_t wrapper_memory_bytes = 8ull << 30; ///< address space of a profiler round the candidate

struct unique_fd {
  int fd = -1;
  unique_fd() = default;
  explicit unique_fd(int f) : fd(f) {}
  unique_fd(const unique_fd&) = delete;
  unique_fd& operator=(const unique_fd&) = delete;
  ~unique_fd() { reset(); }
  void reset(int f = -1) {
    if (fd >= 0) ::close(fd);
    fd = f;
  }
};

/// "slots slot_bytes count" and for each tensor "dtype ndim shape... offset bytes", as runner.cpp reads it.
std::string describe(const tensor_layout& layout) {
  std::string text = " " + std::to_string(layout.specs.empty() ? 0 : layout.slots) + " " + std::to_string(layout.slot_bytes) + " " +
                     std::to_string(layout.specs.size());
  for (size_t i = 0; i < layout.specs.size(); ++i) {
    const auto& spec = layout.specs[i];
    text += " " + std::to_string(static_cast<int>(spec.dtype)) + " " + std::to_string(spec.shape.size());
    for (auto d : spec.shape) text += " " + std::to_string(d);
    text += " " + std::to_string(layout.offsets[i]) + " " + std::to_string(spec.bytes());
  }
  return text;
}

/// A descriptor to execute. Where the folder for temporary files is mounted noexec, a copy in memory serves.
expected<int> open_executable(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return fail(ec::io_error, "cannot open " + path.string() + ": " + std::strerror(errno));
  struct statvfs mount {};
  if (::fstatvfs(file, &mount) != 0 || !(mount.f_flag & ST_NOEXEC)) return file;
  ::close(file);
  auto content = read_file(path, defaults::build_file_bytes);
  if (!content) return fail(content.error());
  const unique_fd copy(::memfd_create("pragma-candidate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  bool good = copy.fd >= 0;
  for (size_t done = 0; good && done < content->size();) {
    const auto n = ::write(copy.fd, content->data() + done, content->size() - done);
    good = n > 0;
    if (good) done += static_cast<size_t>(n);
  }
  good = good && ::fcntl(copy.fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  // A file that is open for writing cannot be executed: open it again, for reading.
  const int again = good ? ::open(("/proc/self/fd/" + std::to_string(copy.fd)).c_str(), O_RDONLY | O_CLOEXEC) : -1;
  if (again < 0)
    return fail(ec::io_error, "cannot copy " + path.string() + " into memory to execute it: " + std::strerror(errno),
                "set TMPDIR to a folder that is not mounted noexec");
  return again;
}

} // namespace

struct runner_process::impl {
  std::optional<child_process> child;
  unique_fd commands, replies, capture, outputs_file;
  device_choice device;
  tensor_layout params, inputs, outputs;
  std::byte* memory = nullptr;
  std::string captured;
  bool frozen = false;
  bool rests = false;  ///< stopped whenever no call runs
  bool one_thread = false; ///< and starting a second is refused
  call_cost cost;      ///< of the latest call
  std::string ended; ///< how it ended, once that is known
  const std::atomic<bool>* cancel = nullptr;
  double cpu_allowance = 0; ///< seconds

  ~impl() {
    child.reset();
    if (memory) ::munmap(memory, outputs.total_bytes());
  }

  void drain() {
    char buffer[1 << 14];
    // Bounded per visit: a candidate that writes without end must not hold us here past the deadline.
    for (int round = 0; round < 64 && capture.fd >= 0; ++round) {
      const auto n = ::read(capture.fd, buffer, sizeof buffer);
      if (n > 0) {
        captured.append(buffer, std::min(static_cast<size_t>(n), max_captured - std::min(max_captured, captured.size())));
        // The hints come last, after whatever filled the buffer: keep room for them.
        if (captured.size() == max_captured) keep_hints({buffer, static_cast<size_t>(n)});
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      capture.reset();
    }
  }

  std::string late_hints, raised, late_torch; ///< late: of what no longer fits into `captured`
  bool calls_torch = false;
  void keep_hints(std::string_view chunk) {
    for (const char* mark : {PRAGMA_HINT_FORBIDDEN, PRAGMA_HINT_FAULT, PRAGMA_HINT_RAISED}) {
      const auto at = chunk.rfind(mark);
      if (at != std::string_view::npos) late_hints = std::string(chunk.substr(at, chunk.find('\n', at) - at));
    }
    if (const auto at = chunk.rfind(PRAGMA_HINT_TORCH); at != std::string_view::npos) late_torch = std::string(chunk.substr(at, chunk.find('\n', at) - at));
  }

  bool cancelled() const { return cancel && cancel->load(); }

  /// Reads one reply. candidate_failed when the candidate is gone or answers nonsense, timeout, interrupted.
  expected<pragma_reply> read_reply(double timeout_seconds, const std::string& what, const interruption* inside = nullptr) {
    const auto begin = steady::now(), deadline = begin + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(timeout_seconds));
    auto next_look = steady::now() + look_round;
    pragma_reply reply{};
    size_t got = 0;
    while (true) {
      const auto n = ::read(replies.fd, reinterpret_cast<char*>(&reply) + got, sizeof reply - got);
      if (n > 0) {
        got += static_cast<size_t>(n);
        if (got == sizeof reply) return reply;
        continue;
      }
      if (n == 0) return fail(ec::candidate_failed, "the candidate " + why_it_ended() + " " + what);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail(ec::io_error, std::string("cannot read from the candidate: ") + std::strerror(errno));
      const auto now = steady::now();
      if (now >= next_look) {
        next_look = now + look_round;
        (void)child->alive(); // with a process that is gone goes its group, and with that the last writer of the pipe
        if (cancelled()) {
          stop();
          ended = "was stopped";
          return fail(ec::interrupted, "interrupted " + what);
        }
      }
      const double left = std::chrono::duration<double>(deadline - now).count();
      if (left <= 0) {
        drain();
        stop();
        ended = "was stopped";
        return fail(ec::timeout, "the candidate did not come back within " + format_number(timeout_seconds, timeout_seconds < 10 ? 1 : 0) + " s " + what);
      }
      double wait = std::min(left, std::chrono::duration<double>(next_look - now).count()) + 1e-3;
      if (inside) {
        const double until = inside->after_seconds - std::chrono::duration<double>(now - begin).count();
        if (until <= 0) {
          interrupt(*inside);
          inside = nullptr;
          continue;
        }
        wait = std::min(wait, until);
      }
      pollfd fds[2] = {{replies.fd, POLLIN, 0}, {capture.fd, POLLIN, 0}};
      const timespec pause{static_cast<time_t>(wait), static_cast<long>(1e9 * (wait - std::floor(wait)))};
      ::ppoll(fds, capture.fd >= 0 ? 2 : 1, &pause, nullptr);
      if (capture.fd >= 0 && fds[1].revents) drain();
    }
  }

  bool freeze() {
    if (!ended.empty()) return true;
    child->signal(SIGSTOP);
    return frozen = child->wait_stopped(stop_timeout_seconds);
  }
  void thaw() {
    if (frozen && ended.empty()) child->signal(SIGCONT);
    frozen = false;
  }
  /// With the candidate stopped in a call that is not over.
  void interrupt(const interruption& inside) {
    if (freeze() && !unexpected_reply()) inside.act();
    thaw();
  }

  process_result stop() {
    process_result result = child->kill();
    drain();
    return result;
  }

  /// After its pipe has closed: "was killed by SIGSEGV (...): wrote 4 bytes past the end of out0".
  std::string why_it_ended() {
    if (!ended.empty()) return ended;
    const auto since = steady::now();
    while (child->alive() && std::chrono::duration<double>(steady::now() - since).count() < death_grace_seconds) {
      const timespec pause{0, 1000000};
      ::nanosleep(&pause, nullptr);
    }
    if (child->alive()) {
      stop();
      return ended = "closed its control channel and was stopped";
    }
    const auto result = stop();
    const auto hint = explain();
    if (result.signal == 0 && hint.rfind("used", 0) == 0) return ended = hint;
    if (result.signal == 0 && !raised.empty()) return ended = raised;
    // The C library starts threads with all signals blocked: then nobody can say which call it was.
    if (result.signal == SIGSYS || result.exit_code == 128 + SIGSYS)
      return ended = hint.rfind("used", 0) == 0 ? hint
                     : one_thread               ? "used a forbidden system call and was killed (starting a second thread is one where it has one, see --threads)"
                                                : "used a forbidden system call and was killed";
    if (result.signal == 0) return ended = "ended its process by itself (exit code " + std::to_string(result.exit_code) + ")";
    if (result.signal == SIGKILL) return ended = "was killed by SIGKILL (CPU time or memory ran out)";
    ended = "was " + describe_end(result);
    if (!hint.empty() && (result.signal == SIGSEGV || result.signal == SIGBUS)) ended += ": it " + hint;
    return ended;
  }

  /// The runner's last hint in words; empty when there is none or it makes no sense.
  std::string explain() {
    std::string hint = late_hints;
    for (const auto& line : split(captured + "\n" + late_hints, '\n'))
      if (line.rfind(PRAGMA_HINT_RAISED, 0) == 0) raised = printable(line.substr(std::strlen(PRAGMA_HINT_RAISED) + 1));
    for (const auto& line : split(captured, '\n'))
      if (late_hints.empty() && (line.rfind(PRAGMA_HINT_FORBIDDEN, 0) == 0 || line.rfind(PRAGMA_HINT_FAULT, 0) == 0)) hint = line;
    const auto words = split(printable(hint), ' ');
    const auto value = [&](size_t i) {
      long v = -1;
      if (i < words.size()) v = std::strtol(words[i].c_str(), nullptr, 10);
      return v;
    };
    if (words.size() >= 3 && words[0] == PRAGMA_HINT_FORBIDDEN) {
      if (words[2] == PRAGMA_THREAD) return "used a second thread, but it has one (--threads says how many)";
      auto text = "used a forbidden system call (" + system_call_name(static_cast<int>(value(1)));
      if (words[2] != "-") text += " of " + hint.substr(words[0].size() + words[1].size() + 2, 80);
      return printable(text) + ")";
    }
    if (words.size() < 3 || words[0] != PRAGMA_HINT_FAULT) return "";
    const std::string verb = words[1] == "w" ? "wrote" : words[1] == "r" ? "read" : "went";
    if (words.size() < 6) return verb + (verb == "went" ? " to" : " at") + " an address outside all tensors (a null or wild pointer, or the stack ran out)";
    if (value(2) < 0 || value(2) > 2) return "";
    const tensor_layout& layout = value(2) == 0 ? params : value(2) == 1 ? inputs : outputs;
    const auto tensor = static_cast<size_t>(value(4));
    if (tensor >= layout.specs.size()) return "";
    const auto& spec = layout.specs[tensor];
    const long at = value(5), size = static_cast<long>(spec.bytes());
    const std::string name = std::string(value(2) == 0 ? "parameter " : value(2) == 1 ? "input " : "output ") + spec.name;
    if (at < 0) return verb + " " + std::to_string(-at) + " bytes before the start of " + name;
    if (at >= size) return verb + " past the end of " + name + " (byte " + std::to_string(at) + " of " + std::to_string(size) + ")";
    return verb + " to " + name + ", which is read-only";
  }

  /// Bytes on the reply pipe that nobody asked for.
  bool unexpected_reply() {
    pollfd one{replies.fd, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1 && (one.revents & POLLIN);
  }
};

expected<runner_process> runner_process::start(const build_output& built, const reference& ref, const runner_options& options) {
  return start(built, {ref.params_fd(), ref.inputs_fd(), ref.params_layout(), ref.inputs_layout(), ref.outputs_layout(), ref.task_file()}, options);
}

expected<runner_process> runner_process::start(const build_output& built, const runner_memory& memory, const runner_options& options) {
  const bool python = built.language == "triton";
  if (python && options.wrapper.empty() && built.kept && built.kept->prepared) {
    auto prepared = std::move(*std::exchange(built.kept->prepared, nullptr));
    auto begun = begin(std::move(prepared), built, options);
    if (begun || begun.error().code != ec::tool_failed) return begun;
    // It died while it waited, which is not this candidate's fault: another one.
  }
  auto launched = launch(built, memory, options);
  if (!launched) return launched;
  return begin(std::move(*launched), built, options);
}

expected<runner_process> runner_process::prepare(const build_output& shell, const reference& ref, const runner_options& options) {
  return launch(shell, {ref.params_fd(), ref.inputs_fd(), ref.params_layout(), ref.inputs_layout(), ref.outputs_layout(), ref.task_file()}, options);
}

expected<runner_process> runner_process::launch(const build_output& built, const runner_memory& memory, const runner_options& options) {
  auto p = std::make_unique<impl>();
  p->params = memory.params;
  p->inputs = memory.inputs;
  p->outputs = memory.outputs;
  p->device = built.device;
  p->cancel = options.cancel;
  p->cpu_allowance = static_cast<double>(options.cpu_seconds);
  const uint64_t output_bytes = memory.outputs.total_bytes();
  const auto system_error = [](const std::string& what) { return fail(ec::io_error, "cannot " + what + " for the candidate: " + std::strerror(errno)); };

  p->outputs_file.reset(::memfd_create("pragma-outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (p->outputs_file.fd < 0 || ::ftruncate(p->outputs_file.fd, static_cast<off_t>(output_bytes)) != 0 ||
      ::fcntl(p->outputs_file.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("make shared memory");
  void* mapped = ::mmap(nullptr, output_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->outputs_file.fd, 0);
  if (mapped == MAP_FAILED) return system_error("map the outputs");
  p->memory = static_cast<std::byte*>(mapped);

  const bool python = built.language == "triton";
  unique_fd executable;
  if (!python) {
    auto opened = open_executable(built.executable);
    if (!opened) return fail(opened.error());
    executable.reset(*opened);
  }
  int command_pipe[2], reply_pipe[2], capture_pipe[2];
  if (::pipe2(command_pipe, O_CLOEXEC) != 0) return system_error("make a pipe");
  unique_fd command_end(command_pipe[0]);
  p->commands.reset(command_pipe[1]);
  if (::pipe2(reply_pipe, O_CLOEXEC) != 0) return system_error("make a pipe");
  unique_fd reply_end(reply_pipe[1]);
  p->replies.reset(reply_pipe[0]);
  if (::pipe2(capture_pipe, O_CLOEXEC) != 0) return system_error("make a pipe");
  unique_fd capture_end(capture_pipe[1]);
  p->capture.reset(capture_pipe[0]);
  for (int fd : {p->replies.fd, p->capture.fd, p->commands.fd}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);

  process_spec spec;
  const auto threads = std::to_string(std::max(1, options.threads));
  const std::string layout = std::to_string(options.threads) + describe(p->params) + describe(p->inputs) + describe(p->outputs);
  spec.cpus = options.cpus;
  spec.inherit_fds = {{capture_end.fd, 1}, {capture_end.fd, 2}, {command_end.fd, PRAGMA_FD_COMMANDS}, {reply_end.fd, PRAGMA_FD_REPLIES},
                      {p->outputs_file.fd, PRAGMA_FD_OUTPUTS}};
  if (memory.params_fd >= 0) spec.inherit_fds.push_back({memory.params_fd, PRAGMA_FD_PARAMS});
  if (memory.inputs_fd >= 0) spec.inherit_fds.push_back({memory.inputs_fd, PRAGMA_FD_INPUTS});
  sandbox_options sandbox;
  if (python) {
    if (auto prepared = prepare_python(built, memory, options, layout, spec, sandbox); !prepared) return fail(prepared.error());
  } else {
    spec.argv = {"candidate", layout};
    spec.exec_fd = executable.fd;
    spec.cwd = "/";
    spec.env = {{"OMP_NUM_THREADS", threads}, {"OMP_DYNAMIC", "false"}, {"OMP_THREAD_LIMIT", threads}, {"GOMP_SPINCOUNT", spin_count},
                // Memory given back to the kernel is faulted in again on the next call: the reference keeps its own, too.
                {"GLIBC_TUNABLES", allocator_tunables}};
    const auto count = static_cast<uint64_t>(std::max(1, options.threads));
    spec.limits.memory_bytes = p->params.total_bytes() + p->inputs.total_bytes() + output_bytes + options.scratch_memory_bytes +
                               address_space_slack + count * stack_per_thread;
    spec.limits.cpu_seconds = options.cpu_seconds;
    spec.limits.processes = count;
    sandbox.policy = sandbox_policy::candidate;
    sandbox.threads = count > 1;
    p->one_thread = count == 1;
  }
  if (!python && !options.wrapper.empty()) {
    // An interpreter of machine code (valgrind) opens files and keeps shadow memory; the candidate has been verified before.
    auto argv = options.wrapper;
    argv.push_back(built.executable.string());
    argv.push_back(layout);
    spec.argv = std::move(argv);
    spec.exec_fd = -1;
    spec.env.push_back({PRAGMA_WRAPPED, "1"});
    spec.limits.memory_bytes += wrapper_memory_bytes;
    sandbox.policy = sandbox_policy::profiler;
    sandbox.scratch = options.scratch;
    sandbox.readable = {built.executable};
  }
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  auto child = child_process::start(spec);
  if (!child) return fail(child.error());
  p->child = std::move(*child);

  for (auto* fd : {&command_end, &reply_end, &capture_end}) fd->reset();
  return runner_process(std::move(p));
}

expected<runner_process> runner_process::begin(runner_process launched, const build_output& built, const runner_options& options) {
  const bool python = built.language == "triton";
  auto* p = launched.impl_.get();
  p->cancel = options.cancel;
  const auto or_default = [](double chosen, double standard) { return chosen > 0 ? chosen : standard; };
  if (python) {
    auto started = p->read_reply(or_default(options.start_seconds, python_start_seconds), "while Torch was starting");
    if (!started && options.wrapper.empty() && started.error().code != ec::interrupted)
      return fail(ec::tool_failed, "the process for candidates did not start: " + started.error().message, "pragma doctor says what this device lacks");
    if (!started) return fail(started.error());
    if (started->nonce != PRAGMA_STARTED) return fail(ec::internal, "the process for candidates speaks another protocol");
    const pragma_command load{0, 0, 1, 0, PRAGMA_LOAD, 0};
    if (::write(p->commands.fd, &load, sizeof load) != static_cast<ssize_t>(sizeof load))
      return fail(ec::tool_failed, "the process for candidates does not read its commands");
  }
  auto ready = python ? p->read_reply(or_default(options.first_call_seconds, first_call_seconds), "while its module was loaded and called for the first time")
                      : p->read_reply(start_timeout_seconds, "before its first call");
  if (!ready && ready.error().code == ec::timeout && python)
    return fail(ec::timeout, ready.error().message, "a kernel that never ends, or an autotuner with more configurations than can be tried in that time");
  if (!ready) return fail(ready.error());
  if (ready->nonce != PRAGMA_READY)
    return fail(ec::candidate_failed, "the candidate wrote to the control channel before its first call");
  p->rests = !python && options.wrapper.empty();
  if (p->rests && !p->freeze()) return fail(ec::tool_failed, "the candidate's process could not be stopped after its start");
  // What an autotuner chose while others used the device is no choice.
  if (python && options.wrapper.empty())
    if (auto tuned = launched.command(PRAGMA_TUNE, 0, 1, 0, 0, or_default(options.first_call_seconds, first_call_seconds)); !tuned) return fail(tuned.error());
  return launched;
}

expected<double> runner_process::command(uint32_t operation, int first_slot, int slot_count, int64_t calls, uint32_t flags, double timeout_seconds, uint64_t* answer,
                                         const interruption* inside) {
  auto& p = *impl_;
  if (!p.ended.empty()) return fail(ec::candidate_failed, "the candidate " + p.ended + " in an earlier call");
  if (p.unexpected_reply()) return fail(ec::candidate_failed, "the candidate wrote to the control channel by itself");
  const auto lease = lease_device(p.device); // whoever holds it is cancelled with us
  if (p.cancelled()) return fail(ec::interrupted, "interrupted before the call");
  pragma_command command{0, first_slot, slot_count, calls, operation, flags};
  if (::getrandom(&command.nonce, sizeof command.nonce, 0) != static_cast<ssize_t>(sizeof command.nonce))
    return fail(ec::io_error, "cannot get random numbers");
  // A record this small goes into an empty pipe whole. SIGPIPE (a candidate that is gone) is the caller's to see as an error.
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const double used = cpu_seconds(p.child->pid());
  const auto begin = steady::now();
  p.thaw();
  const auto written = ::write(p.commands.fd, &command, sizeof command);
  const int why = errno;
  sigpending(&pending);
  if (written < 0 && why == EPIPE && sigismember(&pending, SIGPIPE)) {
    const timespec now{0, 0};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (written != static_cast<ssize_t>(sizeof command))
    return fail(ec::candidate_failed, "the candidate " + (why == EAGAIN ? std::string("does not read its commands") : p.why_it_ended()) + " before the call");
  auto reply = p.read_reply(timeout_seconds, "during the call", inside);
  p.cost.seconds = std::chrono::duration<double>(steady::now() - begin).count();
  const double used_now = reply ? cpu_seconds(p.child->pid()) : -1;
  p.cost.cpu_seconds = used < 0 || used_now < 0 ? -1 : used_now - used;
  if (!reply) return fail(reply.error());
  if (p.rests && !p.freeze()) return fail(ec::tool_failed, "the candidate's process could not be stopped within " + format_number(stop_timeout_seconds, 0) + " s");
  if (reply->nonce != command.nonce) return fail(ec::candidate_failed, "the candidate forged an answer on the control channel");
  if (reply->flags & PRAGMA_CHANGED_ROUNDING)
    return fail(ec::candidate_failed, "the candidate left another floating-point rounding mode behind after the call", "restore it before returning");
  if (reply->flags & PRAGMA_CHANGED_DENORMALS)
    return fail(ec::candidate_failed, "the candidate left flush-to-zero or denormals-are-zero switched on after the call",
                "restore MXCSR before returning, or compute without it");
  if (reply->flags & PRAGMA_CHANGED_TRAPS) return fail(ec::candidate_failed, "the candidate left another floating-point control state behind after the call");
  if (reply->flags & PRAGMA_CHANGED_PROCESSOR)
    return fail(ec::candidate_failed, "the candidate left the processor's direction flag or its check of alignment set after the call",
                "clear them (cld; EFLAGS.AC) before returning: the program around a kernel would crash");
  if (reply->flags & PRAGMA_CHANGED_INPUTS) return fail(ec::candidate_failed, "the candidate changed its inputs on the device", "write to memory of its own");
  if (reply->flags & PRAGMA_CALLS_TORCH) p.calls_torch = true;
  if (answer) *answer = reply->flags;
  return reply->seconds;
}

namespace {

expected<void> without_value(const expected<double>& result) {
  if (!result) return fail(result.error());
  return {};
}

} // namespace

expected<void> runner_process::call(int first_slot, int slot_count, int64_t calls, double timeout_seconds) {
  return without_value(command(PRAGMA_CALL, first_slot, slot_count, calls, 0, timeout_seconds));
}

expected<void> runner_process::call(int first_slot, int slot_count, int64_t calls, double timeout_seconds, const interruption& inside) {
  return without_value(command(PRAGMA_CALL, first_slot, slot_count, calls, 0, timeout_seconds, nullptr, &inside));
}

expected<void> runner_process::upload(int first_slot, int slot_count, double timeout_seconds) {
  return without_value(command(PRAGMA_UPLOAD, first_slot, slot_count, 0, 0, timeout_seconds));
}

expected<void> runner_process::run(int first_slot, int slot_count, int64_t calls, bool graph, double timeout_seconds) {
  return without_value(command(PRAGMA_RUN, first_slot, slot_count, calls, graph ? PRAGMA_WITH_GRAPH : 0, timeout_seconds));
}

expected<double> runner_process::time(int first_slot, int slot_count, int64_t calls, bool graph, double timeout_seconds) {
  auto seconds = command(PRAGMA_TIME, first_slot, slot_count, calls, graph ? PRAGMA_WITH_GRAPH : 0, timeout_seconds);
  if (seconds && !(*seconds >= 0 && *seconds < 1e9)) return fail(ec::candidate_failed, "the candidate's process answered with no time");
  return seconds;
}

expected<bool> runner_process::capture(int first_slot, int slot_count, double timeout_seconds) {
  uint64_t answer = 0;
  if (auto done = command(PRAGMA_CAPTURE, first_slot, slot_count, 0, 0, timeout_seconds, &answer); !done) return fail(done.error());
  return !(answer & PRAGMA_NO_GRAPH);
}

expected<void> runner_process::download(int first_slot, int slot_count, double timeout_seconds) {
  return without_value(command(PRAGMA_DOWNLOAD, first_slot, slot_count, 0, 0, timeout_seconds));
}

expected<void> runner_process::profile(int first_slot, int slot_count, int64_t calls, double timeout_seconds) {
  return without_value(command(PRAGMA_PROFILE, first_slot, slot_count, calls, 0, timeout_seconds));
}

std::vector<std::string> runner_process::torch_operators() {
  auto& p = *impl_;
  if (!p.calls_torch) return {};
  p.drain();
  std::vector<std::string> found;
  for (const auto& line : split(p.captured + "\n" + p.late_torch, '\n'))
    if (line.rfind(PRAGMA_HINT_TORCH, 0) == 0) found = split(printable(trim(line.substr(std::strlen(PRAGMA_HINT_TORCH)))), ',');
  if (found.empty()) found.push_back("operators that are not named"); // said on the channel, not on stderr
  return found;
}

void runner_process::poison() { poison_outputs(impl_->outputs, impl_->memory); }
std::string runner_process::overrun() const { return find_overrun(impl_->outputs, impl_->memory); }

bool runner_process::freeze() { return impl_->frozen || impl_->freeze(); }

void runner_process::thaw() {
  if (!impl_->rests) impl_->thaw();
}

const call_cost& runner_process::last_call() const { return impl_->cost; }

const std::byte* runner_process::outputs() const { return impl_->memory; }
std::byte* runner_process::outputs() { return impl_->memory; }
int runner_process::pid() const { return impl_->child->pid(); }

std::string runner_process::log() {
  impl_->drain();
  std::string text;
  for (const auto& line : split(impl_->captured, '\n'))
    if (line.rfind("pragma-", 0) != 0) text += line + "\n";
  return cut_lines(printable(trim(text)), 40, 10);
}

std::string runner_process::finish(double timeout_seconds) {
  auto& p = *impl_;
  if (!p.ended.empty()) return p.ended;
  p.commands.reset();
  p.thaw();
  const auto since = steady::now();
  while (p.child->alive()) {
    p.drain();
    if (p.cancelled() || std::chrono::duration<double>(steady::now() - since).count() > timeout_seconds) {
      p.stop();
      if (p.cancelled()) return p.ended = "was interrupted";
      return p.ended = "did not end within " + format_number(timeout_seconds, 0) + " s";
    }
    const timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  const auto result = p.stop();
  p.ended = describe_end(result);
  return result.ok() ? std::string() : p.ended;
}

std::string runner_process::output() {
  impl_->drain();
  return impl_->captured;
}

std::string runner_process::end() {
  auto& p = *impl_;
  if (!p.ended.empty()) return p.ended;
  if (!p.child->alive()) return p.why_it_ended();
  p.stop();
  return p.ended = "ran until it was stopped";
}

bool runner_process::usable() {
  auto& p = *impl_;
  return p.ended.empty() && p.child->alive() && (p.cpu_allowance <= 0 || cpu_seconds(p.child->pid()) < p.cpu_allowance / 2);
}

runner_process::runner_process(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
runner_process::runner_process(runner_process&&) noexcept = default;
runner_process& runner_process::operator=(runner_process&&) noexcept = default;
runner_process::~runner_process() = default;

} // namespace pragma
