#include "sandbox/sandbox.hpp"

#include "base/defaults.hpp"
#include "sandbox/landlock.hpp"
#include "sandbox/sandbox_filter.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <grp.h>
#include <memory>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuple>
#include <unistd.h>

namespace pragma {

namespace {

constexpr uid_t nobody = 65534;
constexpr uint64_t tool_processes = 512;   ///< a compiler driver and its children, valgrind's helpers; and what other runs on this machine start meanwhile
constexpr uint64_t device_processes = 1024; ///< threads of Torch, of the driver, of Triton's C compiler, of a profiler
constexpr uint64_t spare_threads = 512;    ///< beyond what the caller asked for: other runs' candidates (or a person's programs) have the same uid, and start threads, too
constexpr uint64_t candidate_open_files = 16;
constexpr uint64_t tool_open_files = 1024;

/// Root without 65534 in its user namespace (some containers) cannot drop to it.
bool can_drop() {
  if (::geteuid() != 0) return false;
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  while (map >> inside >> outside >> count)
    if (nobody >= inside && nobody - inside < count) return true;
  return false;
}

/// Threads that now run under `uid`: RLIMIT_NPROC counts all of them, so a limit for one child is this plus its own.
uint64_t tasks_of(uid_t uid) {
  uint64_t total = 0;
  DIR* processes = ::opendir("/proc");
  if (!processes) return 0;
  while (const dirent* entry = ::readdir(processes)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const std::string folder = std::string("/proc/") + entry->d_name;
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0 || info.st_uid != uid) continue;
    // The link count of the task folder is 2 + the number of threads.
    total += ::stat((folder + "/task").c_str(), &info) == 0 && info.st_nlink > 2 ? info.st_nlink - 2 : 1;
  }
  ::closedir(processes);
  return total;
}

/// All that the child needs between fork and exec, made before fork.
struct prepared {
  std::vector<sock_filter> filter;
  std::vector<size_t> own_pid;
  landlock::ruleset files;
  bool drop = false;
  pid_t parent = 0;

  /// Async-signal-safe.
  bool enter() {
    // Under memory pressure the kernel should end this child and not the checker. Best effort.
    const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
      if (::write(score, "1000", 4) < 0) errno = 0;
      ::close(score);
    }
    if (drop && (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0))
      return false;
    // A change of uid clears this.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return false;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    if (!files.enter()) return false;
    const auto self = static_cast<uint32_t>(::getpid());
    for (size_t at : own_pid) filter[at].k = self;
    return load_filter(filter.data(), filter.size());
  }
};

void allow_system(landlock::ruleset& files) {
  using landlock::access;
  for (const char* folder : {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}) files.allow(folder, access::execute);
  for (const char* file : {"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload"})
    files.allow(file, access::read);
  files.allow("/dev/null", access::write);
  files.allow("/dev/urandom", access::read);
}

} // namespace

expected<void> apply_sandbox(process_spec& spec, const sandbox_options& options) {
  auto filter = filter_for(options.policy, options.threads);
  if (!filter) return fail(filter.error());
  auto child = std::make_shared<prepared>();
  child->filter = (*filter)->code;
  child->own_pid = (*filter)->own_pid;
  child->drop = can_drop();
  child->parent = ::getpid();

  using landlock::access;
  const bool tool = options.policy != sandbox_policy::candidate;
  if (tool) {
    allow_system(child->files);
    const bool device = options.policy == sandbox_policy::device || options.policy == sandbox_policy::device_profiler;
    if (options.policy != sandbox_policy::compiler) {
      // NVIDIA's driver names its threads through /proc and truncates a file there.
      child->files.allow("/proc", device ? access::write : access::read);
      child->files.allow("/sys", access::read);
    }
    for (const auto& path : options.writable) child->files.allow(path, access::write);
    if (options.policy == sandbox_policy::device_profiler) child->files.allow("/dev/shm", access::write);
    for (const auto& path : options.readable) child->files.allow(path, access::execute);
    if (!options.scratch.empty()) {
      child->files.allow(options.scratch, access::write);
      if (child->drop && ::chown(options.scratch.c_str(), nobody, nobody) != 0)
        return fail(ec::io_error, "cannot hand " + options.scratch.string() + " to uid 65534: " + std::strerror(errno));
    }
  } else if (spec.exec_fd >= 0) {
    child->files.allow(spec.exec_fd, access::execute);
  }

  auto& limits = spec.limits;
  const auto standard = [](auto& limit, auto value) {
    if (limit == 0) limit = value;
  };
  const uint64_t others = tasks_of(child->drop ? nobody : ::getuid());
  if (tool) {
    standard(limits.wall_seconds, defaults::build_wall_seconds);
    standard(limits.cpu_seconds, static_cast<uint64_t>(2 * limits.wall_seconds) + 1);
    // A device's driver reserves hundreds of gigabytes of address space, so a limit on that would say nothing.
    const bool device = options.policy == sandbox_policy::device || options.policy == sandbox_policy::device_profiler;
    if (!device) standard(limits.memory_bytes, defaults::build_memory_bytes);
    standard(limits.file_bytes, defaults::build_file_bytes);
    standard(limits.open_files, tool_open_files);
    limits.processes = others + limits.processes + (device ? device_processes : tool_processes);
  } else {
    standard(limits.open_files, candidate_open_files);
    limits.processes = others + limits.processes + spare_threads;
    // Zero means "no limit" in process_limits; one byte is as good as none for a file that cannot be opened anyway.
    standard(limits.file_bytes, 1);
  }

  std::vector<std::pair<std::string, std::string>> environment = {{"LC_ALL", "C"}};
  if (tool) {
    environment.push_back({"PATH", "/usr/local/bin:/usr/bin:/bin"});
    if (!options.scratch.empty()) {
      environment.push_back({"TMPDIR", options.scratch.string()});
      environment.push_back({"HOME", options.scratch.string()});
    }
  }
  environment.insert(environment.end(), spec.env.begin(), spec.env.end());
  spec.env = std::move(environment);
  spec.clear_env = true;
  spec.before_exec = [child] { return child->enter(); };
  return {};
}

void give_to_generated_code(const std::filesystem::path& folder) {
  if (!can_drop()) return;
  const auto give = [](const std::filesystem::path& at) { std::ignore = ::lchown(at.c_str(), nobody, nobody); };
  give(folder);
  std::error_code failed;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, failed); !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) give(at->path());
}

std::filesystem::path barred_at(const std::filesystem::path& path) {
  if (!can_drop()) return {};
  const auto open_to = [](const std::filesystem::path& at, mode_t others) {
    struct stat info {};
    return ::stat(at.c_str(), &info) != 0 || info.st_uid == nobody || (info.st_mode & others) == others; // what is not there stops nobody
  };
  std::error_code ignored;
  for (const auto& way : {std::filesystem::absolute(path, ignored), std::filesystem::weakly_canonical(path, ignored)}) { // a link, and what it leads to
    std::filesystem::path at;
    for (const auto& part : way.parent_path()) {
      at /= part;
      if (!open_to(at, S_IXOTH)) return at;
    }
    if (!open_to(way, S_IROTH)) return way;
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> sandbox_facts() {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto filter = filter_for(sandbox_policy::candidate);
  facts.push_back({"seccomp", filter ? "yes, " + std::to_string((*filter)->code.size()) + " instructions for candidates" : "no: " + filter.error().message});
  const int version = landlock::abi();
  facts.push_back({"landlock", version > 0 ? "abi " + std::to_string(version)
                                           : "no: the compiler can read what this user can read (candidates cannot open files in any case)"});
  facts.push_back({"uid", can_drop()          ? "drops to 65534"
                          : ::geteuid() == 0 ? "stays root: uid 65534 is not mapped in this user namespace"
                                             : "stays " + std::to_string(::geteuid()) + " (an ordinary user)"});
  return facts;
}

} // namespace pragma
