// The only code of ours in a candidate's process: maps the tensors, answers commands, explains faults. It is linked with
// the candidate into one static executable whose system call filter is already in force when this starts
// (docs/sandbox.md). It trusts nobody and nobody trusts it: a candidate can overwrite anything here, and what it could
// gain that way (an early "done", a forged hint) is caught by who compares and times from outside.
// No C++ library: this must not pull anything into candidates that they did not ask for.
#include "kernels/runner/pragma_kernel.h"
#include "kernels/runner/protocol.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

struct tensor_map {
  int32_t dtype, ndim;
  int64_t shape[8];
  uint64_t offset, bytes;
};

struct group {
  long slots, count;
  uint64_t slot_bytes;
  tensor_map* tensors;
  char* base;
};

group groups[3];
constexpr uint64_t page = 4096;

// -- floating-point state ------------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr unsigned mxcsr_default = 0x1f80, mxcsr_sticky = 0x3f, mxcsr_rounding = 0x6000, mxcsr_denormals = 0x8040;
constexpr unsigned short x87_default = 0x37f, x87_rounding = 0xc00;

/// What differs from the state every program starts with; restores it where it does.
uint64_t check_floating_point() {
  unsigned mxcsr = 0;
  unsigned short x87 = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  const unsigned changed = (mxcsr ^ mxcsr_default) & ~mxcsr_sticky;
  const auto changed_x87 = static_cast<unsigned short>(x87 ^ x87_default);
  if (__builtin_expect((changed | changed_x87) == 0, 1)) return 0;
  uint64_t flags = 0;
  if ((changed & mxcsr_rounding) || (changed_x87 & x87_rounding)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (changed & mxcsr_denormals) flags |= PRAGMA_CHANGED_DENORMALS;
  if ((changed & ~(mxcsr_rounding | mxcsr_denormals)) || (changed_x87 & static_cast<unsigned short>(~x87_rounding)))
    flags |= PRAGMA_CHANGED_TRAPS;
  mxcsr = mxcsr_default;
  x87 = x87_default;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fldcw %0" : : "m"(x87));
  return flags;
}
#elif defined(__aarch64__)
uint64_t check_floating_point() {
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  if (__builtin_expect(fpcr == 0, 1)) return 0;
  uint64_t flags = 0;
  if (fpcr & (3ull << 22)) flags |= PRAGMA_CHANGED_ROUNDING;
  if (fpcr & ((1ull << 24) | (1ull << 19) | 1ull)) flags |= PRAGMA_CHANGED_DENORMALS;
  if (!flags) flags |= PRAGMA_CHANGED_TRAPS;
  fpcr = 0;
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
  return flags;
}
#else
uint64_t check_floating_point() { return 0; }
#endif

// -- explaining an end ---------------------------------------------------------------------------------------------

struct line {
  char text[256] = "\n"; // whatever was printed before may not have ended its line
  size_t size = 1;
  void add(const char* word) {
    while (*word && size < sizeof text - 2) text[size++] = *word++;
  }
  void add(long value) {
    char digits[24];
    size_t n = 0;
    unsigned long rest = value < 0 ? 0ul - static_cast<unsigned long>(value) : static_cast<unsigned long>(value);
    do digits[n++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) digits[n++] = '-';
    while (n && size < sizeof text - 2) text[size++] = digits[--n];
  }
  void send() {
    text[size++] = '\n';
    if (write(2, text, size) < 0) errno = 0;
  }
};

bool starts_with(const char* text, const char* start) { return strncmp(text, start, strlen(start)) == 0; }

/// The kernel has already refused the call when this runs.
void on_forbidden(int, siginfo_t* info, void* context) {
  const char* path = nullptr;
#if defined(__x86_64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_syscall == SYS_openat) path = reinterpret_cast<const char*>(registers[REG_RSI]);
  if (info->si_syscall == SYS_open || info->si_syscall == SYS_unlink || info->si_syscall == SYS_execve)
    path = reinterpret_cast<const char*>(registers[REG_RDI]);
  auto& result = registers[REG_RAX];
#elif defined(__aarch64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.regs;
  if (info->si_syscall == SYS_openat) path = reinterpret_cast<const char*>(registers[1]);
  auto& result = registers[0];
#endif
  // What libgomp and glibc ask on their own, and do without when refused.
  if (info->si_syscall == SYS_openat && path &&
      (starts_with(path, "/sys/devices/system/") || starts_with(path, "/sys/fs/cgroup/") || starts_with(path, "/sys/kernel/mm/") ||
       starts_with(path, "/proc/sys/") || strcmp(path, "/proc/stat") == 0 || strcmp(path, "/proc/cpuinfo") == 0)) {
    result = -EACCES;
    return;
  }
  line out;
  out.add(PRAGMA_HINT_FORBIDDEN " ");
  out.add(static_cast<long>(info->si_syscall));
  out.add(" ");
  out.add(path ? path : "-");
  out.send();
  _exit(128 + SIGSYS);
}

/// Says which tensor's edge was crossed, then lets the fault happen again with its default end.
void on_fault(int number, siginfo_t* info, void* context) {
  signal(number, SIG_DFL);
  const char* kind = "?";
#if defined(__x86_64__)
  kind = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "w" : "r";
#else
  (void)context;
#endif
  const char* at = static_cast<const char*>(info->si_addr);
  line out;
  out.add(PRAGMA_HINT_FAULT " ");
  out.add(kind);
  for (int g = 0; g < 3; ++g) {
    const group& in = groups[g];
    if (!in.base || at < in.base - page || at >= in.base + in.slot_bytes * static_cast<uint64_t>(in.slots) + page) continue;
    // The nearest tensor: the distance from its start to the address, whichever lies closest.
    long best_slot = 0, best_tensor = 0, best = 0, nearest = -1;
    for (long s = 0; s < in.slots; ++s)
      for (long t = 0; t < in.count; ++t) {
        const char* start = in.base + static_cast<uint64_t>(s) * in.slot_bytes + in.tensors[t].offset;
        const long from = at - start, size = static_cast<long>(in.tensors[t].bytes);
        const long gap = from < 0 ? -from : from >= size ? from - size : 0;
        if (nearest < 0 || gap < nearest) nearest = gap, best_slot = s, best_tensor = t, best = from;
      }
    const long where[] = {static_cast<long>(g), best_slot, best_tensor, best};
    for (const long value : where) {
      out.add(" ");
      out.add(value);
    }
    out.send();
    return;
  }
  out.add(" -");
  out.send();
}

alignas(64) char fault_stack[16384];

/// Runs before every constructor, the candidate's and libgomp's.
void first_of_all(int, char**, char** environment) {
  stack_t stack{};
  stack.ss_sp = fault_stack;
  stack.ss_size = sizeof fault_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  action.sa_sigaction = on_forbidden;
  sigaction(SIGSYS, &action, nullptr);
  for (; *environment; ++environment)
    if (starts_with(*environment, PRAGMA_WRAPPED "=")) return;
  // From here nobody can put another handler for SIGSYS or add filters: a forbidden call ends the process.
  // (The filter that came before this one has already refused foreign architectures.)
  const uint32_t kill = SECCOMP_RET_KILL_PROCESS;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGSYS, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, kill),
  };
  const sock_fprog program{sizeof code / sizeof *code, code};
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

__attribute__((section(".preinit_array"), used)) void (*const first_of_all_entry)(int, char**, char**) = first_of_all;

// -- set-up --------------------------------------------------------------------------------------------------------

[[noreturn]] void give_up(const char* why) {
  line out;
  out.add("runner: ");
  out.add(why);
  out.send();
  _exit(120);
}

int64_t number(char*& text) {
  char* end = text;
  const long long value = strtoll(text, &end, 10);
  if (end == text) give_up("bad layout");
  text = end;
  return value;
}

/// "slots slot_bytes count" and for each tensor "dtype ndim shape... offset bytes".
void read_layout(char*& text, group& g) {
  g.slots = number(text);
  g.slot_bytes = static_cast<uint64_t>(number(text));
  g.count = number(text);
  g.tensors = static_cast<tensor_map*>(calloc(static_cast<size_t>(g.count) + 1, sizeof(tensor_map)));
  if (!g.tensors) give_up("out of memory");
  for (long i = 0; i < g.count; ++i) {
    auto& t = g.tensors[i];
    t.dtype = static_cast<int32_t>(number(text));
    t.ndim = static_cast<int32_t>(number(text));
    if (t.ndim > 8) give_up("more than 8 dimensions");
    for (int d = 0; d < t.ndim; ++d) t.shape[d] = number(text);
    t.offset = static_cast<uint64_t>(number(text));
    t.bytes = static_cast<uint64_t>(number(text));
  }
}

/// Reserves the whole range without access and maps only the tensors' own pages into it: what lies between faults.
void map_group(group& g, int fd, int protection) {
  const uint64_t total = g.slot_bytes * static_cast<uint64_t>(g.slots);
  if (total == 0) return;
  char* reserved = static_cast<char*>(mmap(nullptr, total + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (reserved == MAP_FAILED) give_up("cannot reserve address space for the tensors");
  g.base = reserved + page;
  for (long s = 0; s < g.slots; ++s)
    for (long i = 0; i < g.count; ++i) {
      const uint64_t start = static_cast<uint64_t>(s) * g.slot_bytes + g.tensors[i].offset;
      const uint64_t from = start / page * page, to = (start + g.tensors[i].bytes + page - 1) / page * page;
      if (to == from) continue;
      if (mmap(g.base + from, to - from, protection, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(from)) == MAP_FAILED)
        give_up("cannot map a tensor");
    }
  close(fd);
}

bool read_all(void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = read(PRAGMA_FD_COMMANDS, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void reply(uint64_t nonce, uint64_t flags) {
  const pragma_reply answer{nonce, flags, 0};
  if (write(PRAGMA_FD_REPLIES, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) _exit(121);
}

} // namespace

/// argv[1]: the number of threads, then the layouts of parameters, inputs and outputs.
int main(int argc, char** argv) {
  if (argc != 2) give_up("this program is started by pragma, not by hand");
  char* text = argv[1];
  const auto threads = static_cast<int32_t>(number(text));
  for (auto& g : groups) read_layout(text, g);
  map_group(groups[0], PRAGMA_FD_PARAMS, PROT_READ);
  map_group(groups[1], PRAGMA_FD_INPUTS, PROT_READ);
  map_group(groups[2], PRAGMA_FD_OUTPUTS, PROT_READ | PROT_WRITE);

  // The descriptors of all slots, made read-only: a candidate that scribbles on them faults instead of confusing itself.
  const long slots = groups[1].slots > groups[2].slots ? groups[1].slots : groups[2].slots;
  const size_t per_slot = static_cast<size_t>(groups[0].count + groups[1].count + groups[2].count);
  const size_t size = static_cast<size_t>(slots) * (sizeof(pragma_args) + per_slot * sizeof(pragma_tensor)) + page;
  char* table = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (table == MAP_FAILED) give_up("out of memory");
  auto* args = reinterpret_cast<pragma_args*>(table);
  auto* next = reinterpret_cast<pragma_tensor*>(table + static_cast<size_t>(slots) * sizeof(pragma_args));
  for (long s = 0; s < slots; ++s) {
    const pragma_tensor* starts[3];
    for (int g = 0; g < 3; ++g) {
      const group& in = groups[g];
      starts[g] = next;
      const uint64_t slot = in.slots ? static_cast<uint64_t>(s % in.slots) * in.slot_bytes : 0;
      for (long i = 0; i < in.count; ++i, ++next) {
        next->data = in.base + slot + in.tensors[i].offset;
        next->dtype = in.tensors[i].dtype;
        next->ndim = in.tensors[i].ndim;
        memcpy(next->shape, in.tensors[i].shape, sizeof next->shape);
      }
    }
    args[s].params = starts[0];
    args[s].inputs = starts[1];
    args[s].outputs = starts[2];
    args[s].n_params = static_cast<int32_t>(groups[0].count);
    args[s].n_inputs = static_cast<int32_t>(groups[1].count);
    args[s].n_outputs = static_cast<int32_t>(groups[2].count);
    args[s].threads = threads;
  }
  mprotect(table, size, PROT_READ);

  uint64_t flags = check_floating_point(); // a constructor may have changed it
  reply(PRAGMA_READY, 0);
  pragma_command command;
  while (read_all(&command, sizeof command)) {
    if (command.operation != PRAGMA_CALL || command.slot_count < 1 || command.first_slot < 0 || command.first_slot + command.slot_count > slots) give_up("bad command");
    int32_t slot = 0;
    for (int64_t i = 0; i < command.calls; ++i) {
      pragma_kernel(args + command.first_slot + slot);
      flags |= check_floating_point();
      if (++slot == command.slot_count) slot = 0;
    }
    reply(command.nonce, flags);
    flags = 0;
  }
  _exit(0);
}
