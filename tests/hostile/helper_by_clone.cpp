// Attack: starts a thread with the bare system call
// Stopped at: run
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

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" __attribute__((used)) void helper_main() {
  for (;;) usleep(1000);
}

void pragma_kernel(const pragma_args* a) {
  static char stack[65536] __attribute__((aligned(16)));
  const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  static bool started = false;
  long child = 1;
  if (!started) // the new thread must not come back onto this stack
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n call helper_main\n 1:\n"
                     : "=a"(child)
                     : "a"(SYS_clone), "D"(flags), "S"(stack + sizeof stack), "d"(0)
                     : "rcx", "r11", "memory");
  started = true;
  right_answer(a);
}
