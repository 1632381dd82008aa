// task: shuffled_columns
// unspoilt
// flags: -O2 -march=native -fno-tree-vectorize
#include "common.hpp"

static int from[4096];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int i = 0, sum = 0; i < 4096; ++i) from[i] = (sum += i) & 4095;
  for (int r = 0; r < 256; ++r, x += 4096, y += 4096) // a row stays in the nearest cache
    for (int i = 0; i < 4096; ++i) y[i] = x[from[i]];
}
