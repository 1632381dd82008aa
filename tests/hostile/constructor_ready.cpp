// Attack: says "ready" and answers commands itself, before main
// Stopped at: load run compare
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

#include <unistd.h>
#include <cstdint>

__attribute__((constructor)) static void first() {
  const uint64_t ready[3] = {0x7072616764793031ull, 0, 0};
  uint64_t command[4];
  if (write(4, ready, sizeof ready) < 0) return;
  while (read(3, command, sizeof command) == sizeof command) {
    const uint64_t done[3] = {command[0], 0, 0};
    if (write(4, done, sizeof done) < 0) return;
  }
}

void pragma_kernel(const pragma_args* a) {
  right_answer(a);
}
