#include "execution/runner_process.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/language.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "execution/candidate_output.hpp"
#include "execution/contention.hpp"
#include "devices/device_lease.hpp"
#include "execution/native_process.hpp"
#include "execution/output_guard.hpp"
#include "execution/python_process.hpp"
#include "execution/runner/protocol.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

namespace pragma {

namespace {

using steady = std::chrono::steady_clock;

constexpr double start_timeout_seconds = 10;       ///< constructors and the mapping of the tensors
constexpr double python_start_seconds = 150;       ///< importing Torch, waking the device, laying the tensors there; nothing of the candidate's
constexpr double first_call_seconds = 240;         ///< its module, compiling every kernel (and every configuration of an autotuner), one call
constexpr double stop_timeout_seconds = 10;        ///< for all threads to stop after SIGSTOP, on a machine with other work
constexpr double death_grace_seconds = 0.2;        ///< between the end of its pipe and its exit status
constexpr auto look_round = std::chrono::milliseconds(50); ///< between two looks whether we are cancelled, or the candidate is gone

tl::unexpected<error> system_error(const std::string& what) { return fail(ec::io_error, "cannot " + what + " for the candidate: " + std::strerror(errno)); }

} // namespace

struct runner_process::impl {
  std::optional<child_process> child;
  unique_fd commands, replies, capture, outputs_file;
  device_choice device;
  tensor_layout params, inputs, outputs;
  std::byte* memory = nullptr;
  candidate_output printed;
  bool frozen = false;
  std::string not_stopped; ///< why freeze() has failed
  bool rests = false;  ///< stopped whenever no call runs
  bool one_thread = false; ///< and starting a second is refused
  call_cost cost;      ///< of the latest call
  candidate_end ended; ///< once that is known
  bool calls_torch = false;
  const std::atomic<bool>* cancel = nullptr;
  double cpu_allowance = 0; ///< seconds

  expected<void> share_outputs();
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
        printed.add({buffer, static_cast<size_t>(n)});
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      capture.reset();
    }
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
      if (n == 0) return fail(failure(what));
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail(ec::io_error, std::string("cannot read from the candidate: ") + std::strerror(errno));
      const auto now = steady::now();
      if (now >= next_look) {
        next_look = now + look_round;
        (void)child->alive(); // with a process that is gone goes its group, and with that the last writer of the pipe
        if (cancelled()) {
          stop();
          end_as("was stopped");
          return fail(ec::interrupted, "interrupted " + what);
        }
      }
      const double left = std::chrono::duration<double>(deadline - now).count();
      if (left <= 0) {
        drain();
        stop();
        end_as("was stopped");
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
    if (over()) return true;
    child->signal(SIGSTOP);
    if ((frozen = child->wait_stopped(stop_timeout_seconds))) return true;
    const double used = cpu_seconds(child->pid()), waited = run_delay_seconds(child->pid());
    child->signal(SIGSTOP); // a second time: seen twice in an hour of tests beside other work, and not understood
    if ((frozen = child->wait_stopped(stop_timeout_seconds))) return true;
    const auto stat = read_file("/proc/" + std::to_string(child->pid()) + "/stat"); // "pid (comm) state ...": proc(5)
    const auto name_ends = stat ? stat->rfind(") ") : std::string::npos;
    const std::string state = name_ends == std::string::npos ? "?" : stat->substr(name_ends + 2, 1);
    not_stopped = "could not be stopped within " + format_number(2 * stop_timeout_seconds, 0) + " s (state " + state + "); in the second half it computed for " + format_number(cpu_seconds(child->pid()) - used, 2) +
                  " s and waited for a processor for " + format_number(run_delay_seconds(child->pid()) - waited, 2) + " s";
    return false;
  }
  void thaw() {
    if (frozen && !over()) child->signal(SIGCONT);
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

  bool over() const { return !ended.how.empty(); }
  const std::string& end_as(std::string how) { return ended = {std::move(how)}, ended.how; }

  /// After its pipe has closed.
  const candidate_end& why_it_ended() {
    if (over()) return ended;
    const auto since = steady::now();
    while (child->alive() && std::chrono::duration<double>(steady::now() - since).count() < death_grace_seconds) {
      const timespec pause{0, 1000000};
      ::nanosleep(&pause, nullptr);
    }
    const bool lives = child->alive();
    const auto result = stop();
    ended = lives ? candidate_end{"closed its control channel and was stopped"} : end_of(result, printed, {&params, &inputs, &outputs}, one_thread);
    return ended;
  }
  /// candidate_failed: "the candidate was killed by SIGSEGV (...) during the call".
  error failure(const std::string& when) {
    const auto& end = why_it_ended();
    return {ec::candidate_failed, "the candidate " + end.how + " " + when, "", end.why};
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
  const bool python = in_python(built.language);
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

expected<void> runner_process::impl::share_outputs() {
  const auto bytes = outputs.total_bytes();
  outputs_file.reset(::memfd_create("pragma-outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (outputs_file.fd < 0 || ::ftruncate(outputs_file.fd, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(outputs_file.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("make shared memory");
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, outputs_file.fd, 0);
  if (mapped == MAP_FAILED) return system_error("map the outputs");
  memory = static_cast<std::byte*>(mapped);
  return {};
}

expected<runner_process> runner_process::launch(const build_output& built, const runner_memory& memory, const runner_options& options) {
  auto p = std::make_unique<impl>();
  p->params = memory.params;
  p->inputs = memory.inputs;
  p->outputs = memory.outputs;
  p->device = built.device;
  p->cancel = options.cancel;
  p->cpu_allowance = static_cast<double>(options.cpu_seconds);
  if (auto shared = p->share_outputs(); !shared) return fail(shared.error());
  unique_fd command_end, reply_end, capture_end; // the candidate's
  for (auto [read, write] : {std::pair{&command_end, &p->commands}, {&p->replies, &reply_end}, {&p->capture, &capture_end}}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("make a pipe");
    read->reset(ends[0]);
    write->reset(ends[1]);
  }
  for (int fd : {p->replies.fd, p->capture.fd, p->commands.fd}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);

  process_spec spec;
  spec.cpus = options.cpus;
  spec.inherit_fds = {{capture_end.fd, 1}, {capture_end.fd, 2}, {command_end.fd, PRAGMA_FD_COMMANDS}, {reply_end.fd, PRAGMA_FD_REPLIES},
                      {p->outputs_file.fd, PRAGMA_FD_OUTPUTS}};
  if (memory.params_fd >= 0) spec.inherit_fds.push_back({memory.params_fd, PRAGMA_FD_PARAMS});
  if (memory.inputs_fd >= 0) spec.inherit_fds.push_back({memory.inputs_fd, PRAGMA_FD_INPUTS});
  sandbox_options sandbox;
  unique_fd executable;
  const auto layout = layout_text(memory, options.threads);
  if (in_python(built.language)) {
    if (auto prepared = prepare_python(built, memory, options, layout, spec, sandbox); !prepared) return fail(prepared.error());
  } else {
    auto prepared = prepare_native(built, memory, options, layout, spec, sandbox);
    if (!prepared) return fail(prepared.error());
    executable.reset(*prepared);
    p->one_thread = options.threads <= 1;
  }
  if (auto done = apply_sandbox(spec, sandbox); !done) return fail(done.error());
  auto child = child_process::start(spec);
  if (!child) return fail(child.error());
  p->child = std::move(*child);
  for (auto* fd : {&command_end, &reply_end, &capture_end}) fd->reset();
  return runner_process(std::move(p));
}

expected<runner_process> runner_process::begin(runner_process launched, const build_output& built, const runner_options& options) {
  const bool python = in_python(built.language);
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
  std::error_code unknown;
  const auto module_bytes = python ? std::filesystem::file_size(built.module, unknown) : 0;
  const double first_call = or_default(options.first_call_seconds, first_call_seconds + (unknown ? 0 : defaults::module_seconds_a_mib * static_cast<double>(module_bytes) / (1 << 20)));
  auto ready = python ? p->read_reply(first_call, "while its module was loaded and called for the first time")
                      : p->read_reply(start_timeout_seconds, "before its first call");
  if (!ready && ready.error().code == ec::timeout && python)
    return fail(ec::timeout, ready.error().message, "a kernel that never ends, or an autotuner with more configurations than can be tried in that time");
  if (!ready) return fail(ready.error());
  if (ready->nonce != PRAGMA_READY)
    return fail(ec::candidate_failed, "the candidate wrote to the control channel before its first call");
  p->rests = !python && options.wrapper.empty();
  if (p->rests && !p->freeze()) return fail(ec::tool_failed, "after its start the candidate's process " + p->not_stopped);
  // What an autotuner chose while others used the device is no choice.
  if (python && options.wrapper.empty())
    if (auto tuned = launched.command(PRAGMA_TUNE, 0, 1, 0, 0, first_call); !tuned) return fail(tuned.error());
  return launched;
}

expected<double> runner_process::command(uint32_t operation, int first_slot, int slot_count, int64_t calls, uint32_t flags, double timeout_seconds, uint64_t* answer,
                                         const interruption* inside) {
  auto& p = *impl_;
  if (p.over()) return fail(p.failure("in an earlier call"));
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
    return why == EAGAIN ? fail(ec::candidate_failed, "the candidate does not read its commands before the call") : fail(p.failure("before the call"));
  auto reply = p.read_reply(timeout_seconds, "during the call", inside);
  p.cost.seconds = std::chrono::duration<double>(steady::now() - begin).count();
  const double used_now = reply ? cpu_seconds(p.child->pid()) : -1;
  p.cost.cpu_seconds = used < 0 || used_now < 0 ? -1 : used_now - used;
  if (!reply) return fail(reply.error());
  if (p.rests && !p.freeze()) return fail(ec::tool_failed, "the candidate's process " + p.not_stopped);
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

namespace {

expected<double> as_time(const expected<double>& seconds) {
  if (seconds && !(*seconds >= 0 && *seconds < 1e9)) return fail(ec::candidate_failed, "the candidate's process answered with no time");
  return seconds;
}

} // namespace

expected<double> runner_process::time(int first_slot, int slot_count, int64_t calls, bool graph, double timeout_seconds) {
  return as_time(command(PRAGMA_TIME, first_slot, slot_count, calls, graph ? PRAGMA_WITH_GRAPH : 0, timeout_seconds));
}

expected<double> runner_process::time_once(int slot, bool graph, copied inputs, bool flush, double timeout_seconds) {
  const unsigned copies = inputs == copied::taken_over ? PRAGMA_UNSEEN : inputs == copied::elsewhere ? PRAGMA_ELSEWHERE : 0;
  const unsigned flags = (graph ? PRAGMA_WITH_GRAPH : 0) | copies | (flush ? 0 : PRAGMA_NO_FLUSH);
  return as_time(command(PRAGMA_TIME, slot, 1, 1, flags, timeout_seconds));
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
  auto found = p.printed.torch_operators();
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
  return impl_->printed.log();
}

std::string runner_process::finish(double timeout_seconds) {
  auto& p = *impl_;
  if (p.over()) return p.ended.how;
  p.commands.reset();
  p.thaw();
  const auto since = steady::now();
  while (p.child->alive()) {
    p.drain();
    if (p.cancelled() || std::chrono::duration<double>(steady::now() - since).count() > timeout_seconds) {
      p.stop();
      if (p.cancelled()) return p.end_as("was interrupted");
      return p.end_as("did not end within " + format_number(timeout_seconds, 0) + " s");
    }
    const timespec pause{0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  const auto result = p.stop();
  p.end_as(describe_end(result));
  return result.ok() ? std::string() : p.ended.how;
}

std::string runner_process::output() {
  impl_->drain();
  return impl_->printed.text();
}

std::string runner_process::end() {
  auto& p = *impl_;
  if (p.over()) return p.ended.how;
  if (!p.child->alive()) return p.why_it_ended().how;
  p.stop();
  return p.end_as("ran until it was stopped");
}

bool runner_process::usable() {
  auto& p = *impl_;
  return !p.over() && p.child->alive() && (p.cpu_allowance <= 0 || cpu_seconds(p.child->pid()) < p.cpu_allowance / 2);
}

runner_process::runner_process(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
runner_process::runner_process(runner_process&&) noexcept = default;
runner_process& runner_process::operator=(runner_process&&) noexcept = default;
runner_process::~runner_process() = default;

} // namespace pragma
