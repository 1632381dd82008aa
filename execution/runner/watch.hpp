// What stands before everything else in a candidate's process: the program's entry, which puts the handlers for refused system calls and
// faults in place and then locks them, and those handlers. Nothing here calls another function: neither the C library nor anything that the
// candidate may have defined in its stead has run yet, and a function of the library may be one that a candidate's resolver chooses.
#pragma once

#include "execution/runner/protocol.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
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

// -- the kernel, without the C library ------------------------------------------------------------------------------

#if defined(__x86_64__)
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  long result = 0;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}
extern "C" void pragma_return_from_signal();
__asm__(".text\n.globl pragma_return_from_signal\n.type pragma_return_from_signal,@function\npragma_return_from_signal:\n"
        "  mov $15, %eax\n  syscall\n"); // rt_sigreturn
constexpr unsigned long with_restorer = 0x04000000;
#elif defined(__aarch64__)
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  register long which __asm__("x8") = number;
  register long first __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(which), "r"(second), "r"(third), "r"(fourth) : "memory");
  return first;
}
constexpr unsigned long with_restorer = 0;
#else
#error "candidates run on x86-64 and aarch64"
#endif

long address_of(const void* at) { return reinterpret_cast<long>(at); }

/// As the kernel reads it, which is not the C library's struct.
struct signal_action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
void set_handler(int number, void (*handler)(int, siginfo_t*, void*)) {
  signal_action action;
  action.handler = handler;
  action.flags = handler ? SA_SIGINFO | SA_ONSTACK | with_restorer : with_restorer; // none: the default end
#if defined(__x86_64__)
  action.restorer = pragma_return_from_signal;
#else
  action.restorer = nullptr;
#endif
  action.mask = 0;
  system_call(SYS_rt_sigaction, number, address_of(&action), 0, sizeof action.mask);
}

// -- explaining an end ---------------------------------------------------------------------------------------------

struct line {
  char text[256];
  size_t size = 0;
  line() { text[size++] = '\n'; } // whatever was printed before may not have ended its line
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
    system_call(SYS_write, 2, address_of(text), static_cast<long>(size));
  }
};

bool starts_with(const char* text, const char* start) {
  for (; *start; ++text, ++start)
    if (*text != *start) return false;
  return true;
}
bool equal(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {}
  return *a == *b;
}

/// The kernel has already refused the call when this runs.
void on_forbidden(int, siginfo_t* info, void* context) {
  const char* path = nullptr;
#if defined(__x86_64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_syscall == SYS_openat) path = reinterpret_cast<const char*>(registers[REG_RSI]);
  if (info->si_syscall == SYS_open || info->si_syscall == SYS_unlink || info->si_syscall == SYS_execve)
    path = reinterpret_cast<const char*>(registers[REG_RDI]);
  if (info->si_syscall == SYS_clone && (registers[REG_RDI] & CLONE_THREAD)) path = PRAGMA_THREAD;
  auto& result = registers[REG_RAX];
#elif defined(__aarch64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.regs;
  if (info->si_syscall == SYS_openat) path = reinterpret_cast<const char*>(registers[1]);
  if (info->si_syscall == SYS_clone && (registers[0] & CLONE_THREAD)) path = PRAGMA_THREAD;
  auto& result = registers[0];
#endif
  // What libgomp and glibc ask on their own, and do without when refused.
  if (info->si_syscall == SYS_openat && path &&
      (starts_with(path, "/sys/devices/system/") || starts_with(path, "/sys/fs/cgroup/") || starts_with(path, "/sys/kernel/mm/") ||
       starts_with(path, "/proc/sys/") || equal(path, "/proc/stat") || equal(path, "/proc/cpuinfo"))) {
    result = -EACCES;
    return;
  }
  line out;
  out.add(PRAGMA_HINT_FORBIDDEN " ");
  out.add(static_cast<long>(info->si_syscall));
  out.add(" ");
  out.add(path ? path : "-");
  out.send();
  system_call(SYS_exit_group, 128 + SIGSYS);
}

/// Says which tensor's edge was crossed, then lets the fault happen again with its default end.
void on_fault(int number, siginfo_t* info, void* context) {
  set_handler(number, nullptr);
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

const uint32_t refuse = SECCOMP_RET_KILL_PROCESS;
/// Nobody puts another handler for SIGSYS or adds filters: who tries ends. (The filter before this one has already refused foreign
/// architectures.)
const sock_filter lock_handlers[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 4, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 2),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGSYS, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, refuse),
};

} // namespace

/// The program's first code: before the C library relocates itself, which calls the candidate's resolvers, and before all constructors.
/// `stack` as the kernel left it: the count of arguments, the arguments, null, the environment, null.
extern "C" __attribute__((used, no_stack_protector)) void pragma_watch(char** stack) {
  stack_t alternative;
  alternative.ss_sp = fault_stack;
  alternative.ss_flags = 0;
  alternative.ss_size = sizeof fault_stack;
  system_call(SYS_sigaltstack, address_of(&alternative));
  set_handler(SIGSEGV, on_fault);
  set_handler(SIGBUS, on_fault);
  set_handler(SIGSYS, on_forbidden);
  for (char** entry = stack + 1 + reinterpret_cast<uintptr_t>(stack[0]) + 1; *entry; ++entry)
    if (starts_with(*entry, PRAGMA_WRAPPED "=")) return;
  sock_fprog program;
  program.len = sizeof lock_handlers / sizeof *lock_handlers;
  program.filter = const_cast<sock_filter*>(lock_handlers);
  system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, address_of(&program));
}

// The linker is told to start here (execution/build.cpp). The registers are handed on as the kernel left them.
#if defined(__x86_64__)
__asm__(".text\n.globl pragma_start\n.type pragma_start,@function\npragma_start:\n"
        "  mov %rsp, %rbx\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call pragma_watch\n"
        "  mov %rbx, %rsp\n  xor %edx, %edx\n  xor %ebp, %ebp\n  jmp _start\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl pragma_start\n.type pragma_start,@function\npragma_start:\n"
        "  mov x0, sp\n  bl pragma_watch\n  mov x0, #0\n  mov x29, #0\n  mov x30, #0\n  b _start\n");
#endif
