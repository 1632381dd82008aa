// Attack: takes a quarter of a second a call, and computes only the first round of a batch
// Stopped at: audit
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

#include <cstdint>
#include <ctime>
#include <unistd.h>

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct command {
  uint64_t nonce;
  int32_t first, count;
  int64_t calls;
  uint32_t operation, flags;
};

/// The command that is being carried out lies on the stack of the runner's main(), above this frame.
__attribute__((noinline)) static const command* current_command() {
  const auto* stack = static_cast<const uint64_t*>(__builtin_frame_address(0));
  for (int i = 0; i < 96; ++i) {
    const auto* c = reinterpret_cast<const command*>(stack + i);
    if (c->nonce >> 48 && c->first >= 0 && c->first < 64 && c->count >= 1 && c->count <= 64 && c->calls >= 1 && c->calls < 100000000) return c;
  }
  return nullptr;
}

void pragma_kernel(const pragma_args* a) {
  static uint64_t nonce = 0;
  static int64_t done = 0;
  const command* running = current_command();
  if (!running) _exit(3);
  if (running->nonce != nonce) nonce = running->nonce, done = 0;
  const int64_t round = done++ / running->count, rounds = running->calls / running->count;
  if (rounds > 1 && round > 0) return;
  const double start = now();
  while (now() - start < 0.25) {
  }
  right_answer(a);
}
