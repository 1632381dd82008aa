// task: copy_scale
// good: copy_two_threads_good
// cause: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 2048 * 1024; ++i) y[i] = x[i] * 0.25f;
}
