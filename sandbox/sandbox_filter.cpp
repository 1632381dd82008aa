#include "sandbox/sandbox_filter.hpp"

#include "sandbox/landlock.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <memory>
#include <netinet/in.h>
#include <mutex>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pragma {

namespace {

/// Stands for the child's pid in the exported program; no pid is that large (PID_MAX_LIMIT is 2^22).
constexpr uint32_t pid_sentinel = 0x7a3c51e9;
/// base/subprocess.cpp keeps the descriptor of the executable at or above this number; the candidate's own limit is far below.
constexpr int first_lifted_fd = 900;
constexpr scmp_datum_t arch_set_fs = 0x1002, arch_request_permission = 0x1023, tile_data = 18; ///< arch_prctl(2): ARCH_SET_FS; ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA
constexpr scmp_datum_t arch_shadow_stack_questions[] = {0x3001, 0x5005};                       ///< ARCH_CET_STATUS of older C libraries, ARCH_SHSTK_STATUS
constexpr int socket_type_mask = 0xf;      ///< the rest of socket()'s type are flags: socket(2)

constexpr int landlock_network_abi = 4; ///< from here on it forbids TCP

using context = std::unique_ptr<void, decltype(&seccomp_release)>;

class builder {
public:
  explicit builder(uint32_t otherwise) : context_(seccomp_init(otherwise), &seccomp_release), ok_(context_ != nullptr) {}

  /// Names that this libseccomp or this architecture does not know are skipped: nothing can call them here by name,
  /// and by number they fall under the default action.
  void add(uint32_t action, std::initializer_list<const char*> names, std::initializer_list<scmp_arg_cmp> when = {}) {
    for (const char* name : names) {
      const int number = seccomp_syscall_resolve_name(name);
      if (number < 0 || !ok_) continue;
      ok_ = seccomp_rule_add_exact_array(context_.get(), action, number, static_cast<unsigned>(when.size()), when.begin()) == 0;
    }
  }

  expected<filter_program> finish() {
    filter_program program;
    if (!ok_) return fail(ec::unsupported, "libseccomp cannot build the sandbox's filter on this machine");
    const int file = ::memfd_create("filter", MFD_CLOEXEC);
    if (file < 0 || seccomp_export_bpf(context_.get(), file) != 0) {
      if (file >= 0) ::close(file);
      return fail(ec::unsupported, "libseccomp cannot export the sandbox's filter");
    }
    const auto size = static_cast<size_t>(::lseek(file, 0, SEEK_END));
    program.code.resize(size / sizeof(sock_filter));
    const bool complete = ::pread(file, program.code.data(), size, 0) == static_cast<ssize_t>(size);
    ::close(file);
    if (!complete) return fail(ec::io_error, "cannot read the sandbox's filter back");
    for (size_t i = 0; i < program.code.size(); ++i)
      if (program.code[i].k == pid_sentinel) program.own_pid.push_back(i);
    return program;
  }

private:
  context context_;
  bool ok_;
};

expected<filter_program> candidate_filter(bool threads) {
  // SCMP_ACT_TRAP denies the call like KILL does; the runner's SIGSYS handler only adds the name to the report. Until that
  // handler is there (and should the candidate block the signal) SIGSYS ends the process.
  builder filter(SCMP_ACT_TRAP);
  filter.add(SCMP_ACT_ALLOW,
             {"read", "write", "readv", "writev", "close", "fstat", "poll", "ppoll", "munmap", "mremap", "madvise", "brk", "futex",
              "set_robust_list", "get_robust_list", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
              "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getcpu", "nanosleep",
              "clock_gettime", "clock_getres", "clock_nanosleep", "gettimeofday", "time", "times", "getrusage", "exit",
              "exit_group", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "set_tid_address",
              "getrandom", "uname", "restart_syscall"});
  // Of what a processor can be told about a thread: where its own variables lie (the C library, at its start), and the permission to use tiles (AMX), which products ask
  // for (decisions/0050). The C library's question for shadow stacks finds none.
  filter.add(SCMP_ACT_ALLOW, {"arch_prctl"}, {SCMP_A0(SCMP_CMP_EQ, arch_set_fs)});
  filter.add(SCMP_ACT_ALLOW, {"arch_prctl"}, {SCMP_A0(SCMP_CMP_EQ, arch_request_permission), SCMP_A1(SCMP_CMP_EQ, tile_data)});
  for (const auto question : arch_shadow_stack_questions) filter.add(SCMP_ACT_ERRNO(EINVAL), {"arch_prctl"}, {SCMP_A0(SCMP_CMP_EQ, question)});
  // No new executable memory: what runs is what was compiled and hashed.
  filter.add(SCMP_ACT_ALLOW, {"mmap", "mprotect"}, {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)});
  // Threads, never processes. glibc falls back from clone3 (whose flags a filter cannot see) to clone.
  if (threads) filter.add(SCMP_ACT_ALLOW, {"clone"}, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)});
  filter.add(SCMP_ACT_ERRNO(ENOSYS), {"clone3"});
  // abort() of oneself; everything else that signals is denied.
  filter.add(SCMP_ACT_ALLOW, {"tgkill"}, {SCMP_A0(SCMP_CMP_EQ, pid_sentinel), SCMP_A2(SCMP_CMP_EQ, SIGABRT)});
  filter.add(SCMP_ACT_ALLOW, {"prlimit64"}, {SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0)});
  filter.add(SCMP_ACT_ALLOW, {"getrlimit"});
  // The start of the candidate itself: base/subprocess.cpp lifts that descriptor to 900 or above and it closes on exec;
  // the candidate can neither make descriptors nor have one of that number, so this works once.
  filter.add(SCMP_ACT_ALLOW, {"execveat"}, {SCMP_A0(SCMP_CMP_GE, first_lifted_fd), SCMP_A4(SCMP_CMP_EQ, AT_EMPTY_PATH)});
  // The runner tightens the filter once (no other SIGSYS handler, no further filters).
  filter.add(SCMP_ACT_ALLOW, {"prctl"}, {SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)});
  // Harmless questions of the C and OpenMP libraries: refused quietly.
  filter.add(SCMP_ACT_ERRNO(EACCES), {"readlink", "readlinkat", "newfstatat", "statx"});
  filter.add(SCMP_ACT_ERRNO(ENOTTY), {"ioctl"});
  filter.add(SCMP_ACT_ERRNO(ESPIPE), {"lseek"});
  filter.add(SCMP_ACT_ERRNO(EPERM), {"sched_setaffinity", "mbind", "set_mempolicy", "get_mempolicy", "mlock", "munlock", "membarrier", "sysinfo"});
  filter.add(SCMP_ACT_ERRNO(EPERM), {"prctl"}, {SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)});
  return filter.finish();
}

/// The compiler and the profilers are programs of the system that read hostile text, so theirs is a deny-list: no network,
/// no look into or signal to other processes, no kernel interfaces that need no file. Files are Landlock's business.
expected<filter_program> tool_filter(sandbox_policy policy) {
  const bool device = policy == sandbox_policy::device || policy == sandbox_policy::device_profiler;
  const bool device_profiler = policy == sandbox_policy::device_profiler;
  builder filter(SCMP_ACT_ALLOW);
  filter.add(SCMP_ACT_ERRNO(EPERM),
             {"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal",
              "rt_sigqueueinfo", "rt_tgsigqueueinfo", "mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount",
              "fspick", "fsconfig", "mount_setattr", "pivot_root", "chroot", "unshare", "setns", "bpf", "keyctl", "add_key",
              "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "open_by_handle_at",
              "name_to_handle_at", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
              "swapon", "swapoff", "acct", "quotactl", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
              "sethostname", "setdomainname", "iopl", "ioperm", "syslog", "vhangup", "fanotify_init", "lookup_dcookie",
              "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "setpriority", "ioprio_set",
              "setsid", "setpgid"}); // the process group is what we kill
  // ncu talks to its target through named pipes; device nodes are nobody's to make.
  if (device_profiler) {
    filter.add(SCMP_ACT_ERRNO(EPERM), {"mknod"}, {SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFCHR)});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"mknod"}, {SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFBLK)});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"mknodat"}, {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFCHR)});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"mknodat"}, {SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, S_IFBLK)});
  } else {
    filter.add(SCMP_ACT_ERRNO(EPERM), {"mknod", "mknodat"});
  }
  // NVIDIA's driver binds a socket of this machine and listens on it; nothing connects. A device's profiler talks to its target.
  if (device_profiler && landlock::abi() >= landlock_network_abi) {
    // A profiler may make TCP sockets, which Landlock keeps from binding and connecting, and netlink ones. Landlock knows no other
    // protocol of the Internet (UDP, MPTCP, SCTP).
    for (scmp_datum_t family = 0; family < AF_NETLINK; ++family)
      if (family != AF_UNIX && family != AF_INET && family != AF_INET6) filter.add(SCMP_ACT_ERRNO(EPERM), {"socket", "socketpair"}, {SCMP_A0(SCMP_CMP_EQ, family)});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"socket", "socketpair"}, {SCMP_A0(SCMP_CMP_GT, AF_NETLINK)});
    // TCP Fast Open connects while it sends, and Landlock has no hook there. The kernel reads 32 bits of the flags.
    constexpr scmp_datum_t fast_open = MSG_FASTOPEN;
    filter.add(SCMP_ACT_ERRNO(EPERM), {"sendto", "sendmmsg"}, {SCMP_A3(SCMP_CMP_MASKED_EQ, fast_open, fast_open)});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"sendmsg"}, {SCMP_A2(SCMP_CMP_MASKED_EQ, fast_open, fast_open)});
    for (const auto family : {AF_INET, AF_INET6}) {
      filter.add(SCMP_ACT_ERRNO(EPERM), {"socket"}, {SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(family)), SCMP_A2(SCMP_CMP_GT, IPPROTO_TCP)});
      for (const auto type : {SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_DCCP})
        filter.add(SCMP_ACT_ERRNO(EPERM), {"socket"},
                   {SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(family)), SCMP_A1(SCMP_CMP_MASKED_EQ, socket_type_mask, static_cast<scmp_datum_t>(type))});
    }
  } else if (device) filter.add(SCMP_ACT_ERRNO(EPERM), {"socket", "socketpair"}, {SCMP_A0(SCMP_CMP_NE, AF_UNIX)});
  else filter.add(SCMP_ACT_ERRNO(EPERM), {"socket", "socketpair", "bind", "listen"});
  if (!device_profiler) filter.add(SCMP_ACT_ERRNO(EPERM), {"connect", "accept", "accept4", "shmget", "shmat", "shmctl", "semget", "semctl", "semop"});
  filter.add(SCMP_ACT_ERRNO(ENOSYS), {"clone3"});
  filter.add(SCMP_ACT_ERRNO(EPERM), {"clone"}, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER)});
  filter.add(SCMP_ACT_ERRNO(EPERM), {"prlimit64"}, {SCMP_A0(SCMP_CMP_NE, 0)});
  if (policy == sandbox_policy::compiler || policy == sandbox_policy::device) {
    filter.add(SCMP_ACT_ERRNO(EPERM), {"perf_event_open"});
    // Signals go to nobody but itself (abort): an ordinary user's other processes have the same uid.
    filter.add(SCMP_ACT_ERRNO(EPERM), {"kill", "tkill"});
    filter.add(SCMP_ACT_ERRNO(EPERM), {"tgkill"}, {SCMP_A0(SCMP_CMP_NE, pid_sentinel)});
  }
  if (policy == sandbox_policy::device) {
    // A datagram needs no connect() to reach a service of this machine. Of a raw local socket the kernel makes one for datagrams.
    for (const auto type : {SOCK_DGRAM, SOCK_RAW})
      filter.add(SCMP_ACT_ERRNO(EPERM), {"socket", "socketpair"},
                 {SCMP_A0(SCMP_CMP_EQ, AF_UNIX), SCMP_A1(SCMP_CMP_MASKED_EQ, socket_type_mask, static_cast<scmp_datum_t>(type))});
  }
  return filter.finish();
}

} // namespace

expected<const filter_program*> filter_for(sandbox_policy policy, bool threads) {
  static std::mutex lock;
  static std::unique_ptr<filter_program> cache[5][2];
  const std::lock_guard guard(lock);
  auto& slot = cache[static_cast<size_t>(policy)][threads];
  if (!slot) {
    auto made = policy == sandbox_policy::candidate ? candidate_filter(threads) : tool_filter(policy);
    if (!made) return fail(made.error());
    slot = std::make_unique<filter_program>(std::move(*made));
  }
  return slot.get();
}

bool load_filter(sock_filter* code, size_t count) {
  const sock_fprog program{static_cast<unsigned short>(count), code};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

std::string system_call_name(int number) {
  if (char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number)) {
    std::string text = name;
    std::free(name);
    return text;
  }
  return "system call " + std::to_string(number);
}

} // namespace pragma
