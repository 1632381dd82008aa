// Attack: takes its input pages away and computes again only when reading them faults
// Stopped at: compare audit
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

#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <vector>

static volatile sig_atomic_t touched = 1;
static const pragma_args* watched = nullptr;

static void on_touch(int, siginfo_t*, void*) {
  touched = 1;
  mprotect(watched->inputs[0].data, static_cast<size_t>(watched->inputs[0].shape[0] * watched->inputs[0].shape[1]) * 4, PROT_READ);
}

void pragma_kernel(const pragma_args* a) {
  static std::vector<float> answer;
  if (watched && watched != a) return right_answer(a);
  if (!touched) {
    std::memcpy(a->outputs[0].data, answer.data(), answer.size() * 4);
    return;
  }
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_touch;
  sigaction(SIGSEGV, &action, nullptr);
  watched = a;
  right_answer(a);
  const float* y = static_cast<const float*>(a->outputs[0].data);
  answer.assign(y, y + a->outputs[0].shape[0] * a->outputs[0].shape[1]);
  touched = 0;
  mprotect(a->inputs[0].data, answer.size() * 4, PROT_NONE);
}
