#include "reference/reference_process.hpp"

#include "base/files.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "devices/backend.hpp"
#include "devices/device_lease.hpp"
#include "sandbox/allocator.hpp"
#include "sandbox/torch_threads.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <fstream>
#include <sys/socket.h>

namespace pragma {

namespace {

using clock = std::chrono::steady_clock;

constexpr int channel_fd = 3;                      ///< where reference.py expects its socket
constexpr double import_timeout_seconds = 120;     ///< `import torch` from a cold disk on a busy machine
constexpr double cancel_poll_seconds = 0.05;
constexpr uint64_t virtual_overhead = 8ull << 30;  ///< address space of Torch's libraries, stacks and arenas

/// Torch's fastest kernels: it picks AVX2 by itself even where AVX-512 would be faster.
bool has_avx512() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 5, "flags") != 0) continue;
    line += ' ';
    for (const char* flag : {" avx512f ", " avx512bw ", " avx512dq ", " avx512vl "})
      if (line.find(flag) == std::string::npos) return false;
    return true;
  }
  return false;
}

std::string last_lines(const std::string& text) { return trim(cut_lines(printable(text), 2, 6, 2000)); }

ec code_named(const std::string& text) {
  for (ec code : {ec::task_invalid, ec::not_found, ec::unsupported, ec::torch_only, ec::limit_exceeded, ec::timeout})
    if (text == name(code)) return code;
  return ec::internal;
}

expected<json> decode(const std::string& reply, const std::string& doing) {
  auto value = parse_json(reply, "the reference process's reply");
  if (!value) return value;
  if (value->value("ok", false)) return value;
  const ec code = code_named(value->value("code", ""));
  std::string message = value->value("message", "no reason given");
  if (code == ec::internal) message = "while " + doing + ": " + message;
  return fail(code, std::move(message), value->value("hint", ""));
}

using variables = std::vector<std::pair<std::string, std::string>>;

expected<variables> environment_of(const reference_options& options) {
  auto env = environment_of_threads(options.threads);
  env.emplace_back("GLIBC_TUNABLES", allocator_tunables); // outputs above glibc's thresholds would be unmapped and faulted in again on every call
  env.emplace_back("PYTHONHASHSEED", "0");
  if (options.device.on_device()) {
    auto chosen = find_backend(options.device.backend);
    if (!chosen) return fail(chosen.error());
    if (const auto why = why_absent(*chosen); !why.empty())
      return fail(ec::not_found, "there is no " + chosen->title + " here: " + why, "`pragma doctor` shows what this machine has");
    env.push_back({"PRAGMA_DEVICE", chosen->torch_device + ":" + std::to_string(options.device.index)});
    env.push_back({"PRAGMA_TF32", json(options.tf32).get<std::string>()});
  } else {
    // On a device, where the installation of Torch has no compiled modules and we may write them, every later process starts twice as fast.
    env.push_back({"PYTHONDONTWRITEBYTECODE", "1"});
    env.push_back({"CUDA_VISIBLE_DEVICES", ""});
  }
  env.push_back({"PRAGMA_BASELINE", options.baseline});
  if (!options.torch_compiled.empty()) env.push_back({"TORCHINDUCTOR_CACHE_DIR", options.torch_compiled.string()});
  if (has_avx512()) env.emplace_back("ATEN_CPU_CAPABILITY", "avx512");
  return env;
}

} // namespace

expected<reference_process> reference_process::start(const reference_options& options, const python_info& python) {
  reference_process p(options);
  p.options_.threads = std::max(options.threads, 1);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(ec::io_error, std::string("cannot make a socket for the reference process: ") + std::strerror(errno));
  p.channel_.reset(pair[0]);
  unique_fd theirs(pair[1]);
  process_spec spec;
  spec.argv = {python.executable, (share_dir() / "python" / "reference.py").string()};
  auto environment = environment_of(p.options_);
  if (!environment) return fail(environment.error());
  spec.env = std::move(*environment);
  spec.cpus = options.cpus;
  spec.inherit_fds = {{theirs.fd, channel_fd}};
  // A task that asks for more gets a Python error instead of the kernel's out-of-memory killer.
  if (const auto available = available_memory(); available && !options.device.on_device()) spec.limits.memory_bytes = *available + virtual_overhead;
  auto child = child_process::start(spec);
  theirs.reset();
  if (!child) return fail(child.error());
  p.child_.emplace(std::move(*child));
  auto hello = p.exchange({{"do", "hello"}}, "importing torch", std::max(options.load_timeout_seconds, import_timeout_seconds));
  if (!hello) {
    auto e = hello.error();
    if (e.code == ec::task_invalid) e = {ec::tool_failed, python.executable + ": " + e.message, "try `pragma doctor`"};
    return fail(e);
  }
  p.torch_capability = hello->value("capability", "");
  p.blas = hello->value("blas", "");
  p.device_name = hello->value("device", "");
  p.python = python;
  p.python.version = hello->value("python", "");
  p.python.torch = hello->value("torch", "");
  return p;
}

/// How the child ended, for the message of this and every later call.
tl::unexpected<error> reference_process::died(const std::string& doing) {
  const auto end = child_->kill();
  const std::string said = last_lines(end.err);
  ended_ = "the reference process has ended (" + describe_end(end) + ") while " + doing;
  if (end.out_of_memory) return fail(ec::limit_exceeded, ended_, "end what else uses memory, or use smaller shapes");
  return fail(ec::task_invalid, ended_ + (said.empty() ? "" : ":\n" + said), "does the task file end its process?");
}

/// Waits for one reply line. `doing` completes "while ...".
expected<std::string> reference_process::wait(const std::string& doing, double timeout_seconds) {
  const auto start = clock::now();
  while (true) {
    const double left = timeout_seconds - std::chrono::duration<double>(clock::now() - start).count();
    auto line = child_->read_line(options_.cancel ? std::clamp(left, 0.0, cancel_poll_seconds) : std::max(left, 0.0));
    if (line) return line;
    if (line.error().code != ec::timeout) return died(doing);
    if (options_.cancel && options_.cancel->load()) {
      child_->kill();
      ended_ = "the reference process was stopped while " + doing;
      return fail(ec::interrupted, "interrupted while " + doing);
    }
    if (left <= cancel_poll_seconds) {
      child_->kill();
      ended_ = "the reference process was ended after " + format_seconds(timeout_seconds) + " of " + doing;
      return fail(ec::timeout, "no result after " + format_seconds(timeout_seconds) + " of " + doing,
                  "use smaller shapes, or allow more time");
    }
  }
}

expected<void> reference_process::ready() const {
  if (!child_ || !ended_.empty()) return fail(ec::task_invalid, ended_.empty() ? "no reference process" : ended_, "start another");
  return {};
}

expected<json> reference_process::exchange(const json& command, const std::string& doing, double timeout_seconds) {
  if (auto ok = ready(); !ok) return fail(ok.error());
  static constexpr const char* on_device[] = {"trial", "check", "compute", "time", "capture", "share", "limits", "operators"};
  const auto what = command.value("do", "");
  const bool computes = std::find(std::begin(on_device), std::end(on_device), what) != std::end(on_device);
  const auto lease = lease_device(computes ? options_.device : device_choice());
  const std::string line = command.dump() + "\n";
  if (auto sent = child_->write_all(line.data(), line.size()); !sent) return died(doing);
  auto reply = wait(doing, timeout_seconds);
  if (!reply) return fail(reply.error());
  return decode(*reply, doing);
}

expected<void> reference_process::send_files(std::initializer_list<int> files) {
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  char byte = 0;
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), files.begin(), files.size() * sizeof(int));
  ssize_t sent = 0;
  while ((sent = ::sendmsg(channel_.fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
  if (sent < 0) return fail(ec::internal, std::string("cannot hand memory to the reference process: ") + std::strerror(errno));
  return {};
}

expected<void> reference_process::run(int64_t calls, const std::string& doing, double timeout_seconds) {
  if (auto ok = ready(); !ok) return ok;
  const auto lease = lease_device(options_.device);
  const auto line = "r" + std::to_string(calls) + "\n";
  if (auto sent = child_->write_all(line.data(), line.size()); !sent) return died(doing);
  auto reply = wait(doing, timeout_seconds);
  if (!reply) return fail(reply.error());
  if (*reply == "k") return {};
  auto decoded = decode(*reply, doing);
  return decoded ? fail(ec::internal, "unexpected reply of the reference process") : fail(decoded.error());
}

} // namespace pragma
