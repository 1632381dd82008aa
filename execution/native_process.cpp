#include "execution/native_process.hpp"

#include "base/defaults.hpp"
#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "execution/runner/protocol.h"
#include "sandbox/allocator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pragma {

namespace {

constexpr const char* spin_count = "1000";         ///< of OpenMP's threads that wait, as the reference's: by default they spin for milliseconds
constexpr uint64_t address_space_slack = 256ull << 20; ///< code, stacks of a few threads, the reservation's guard pages
constexpr uint64_t stack_per_thread = 72ull << 20; ///< 8 MiB of stack and a 64 MiB malloc arena, address space only
constexpr uint64_t wrapper_memory_bytes = 8ull << 30; ///< address space of a profiler round the candidate

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

/// What follows the layouts in the argument: bytes of a fold for parameters, inputs and outputs, then 0 or 1 for the other conditions.
std::string describe(const run_conditions& c) {
  if (!c.any()) return {};
  std::string text;
  for (const uint64_t number : {c.fold_reads ? c.fold_bytes : 0, c.fold_reads ? c.fold_bytes : 0, c.fold_writes ? c.fold_bytes : 0, uint64_t{c.flush_denormals}, uint64_t{c.ones}, uint64_t{c.huge_pages}, uint64_t{c.apart}})
    text += " " + std::to_string(number);
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

std::string layout_text(const runner_memory& memory, int threads) {
  return std::to_string(threads) + describe(memory.params) + describe(memory.inputs) + describe(memory.outputs);
}

expected<int> prepare_native(const build_output& built, const runner_memory& memory, const runner_options& options, const std::string& layout,
                             process_spec& spec, sandbox_options& sandbox) {
  const auto count = static_cast<uint64_t>(std::max(1, options.threads));
  const auto threads = std::to_string(count);
  auto executable = open_executable(built.executable);
  if (!executable) return executable;
  const auto argument = layout + describe(options.conditions);
  spec.argv = {"candidate", argument};
  spec.exec_fd = *executable;
  spec.cwd = "/";
  spec.env = {{"OMP_NUM_THREADS", threads}, {"OMP_DYNAMIC", "false"}, {"OMP_THREAD_LIMIT", threads}, {"GOMP_SPINCOUNT", spin_count},
              // Memory given back to the kernel is faulted in again on the next call: the reference keeps its own, too.
              {"GLIBC_TUNABLES", allocator_tunables}};
  spec.limits.memory_bytes = memory.params.total_bytes() + memory.inputs.total_bytes() + memory.outputs.total_bytes() + options.scratch_memory_bytes +
                             address_space_slack + count * stack_per_thread;
  spec.limits.cpu_seconds = options.cpu_seconds;
  spec.limits.processes = count;
  sandbox.policy = sandbox_policy::candidate;
  sandbox.threads = count > 1;
  if (options.wrapper.empty()) return executable;
  // An interpreter of machine code (valgrind) opens files and keeps shadow memory; the candidate has been verified before.
  spec.argv = options.wrapper;
  spec.argv.insert(spec.argv.end(), {built.executable.string(), argument});
  spec.exec_fd = -1;
  spec.env.push_back({PRAGMA_WRAPPED, "1"});
  spec.limits.memory_bytes += wrapper_memory_bytes;
  sandbox.policy = sandbox_policy::profiler;
  sandbox.scratch = options.scratch;
  sandbox.readable = {built.executable};
  return executable;
}

} // namespace pragma
