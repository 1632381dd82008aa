// task: copy_scale
// unspoilt
// faster: copy_past_the_caches
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 2048 * 1024; ++i) y[i] = x[i] * 0.25f;
}
