// task: shuffled_columns
// good: shuffle_good
// cause: memory_latency_bound
// or: strided_access
// flags: -O2 -march=native -fno-tree-vectorize
#include "common.hpp"

static int from[4096];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int i = 0, sum = 0; i < 4096; ++i) from[i] = (sum += i) & 4095;
  for (int i = 0; i < 4096; ++i) {
    const float* column = x + from[i];
    for (int r = 0; r < 256; ++r) y[r * 4096 + i] = column[r * 4096];
  }
}
