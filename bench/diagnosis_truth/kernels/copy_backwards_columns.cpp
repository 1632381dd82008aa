// task: copy_scale
// good: copy_good
// cause: strided_access
// or: not_vectorized, memory_latency_bound
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t c = 0; c < 1024; ++c)
    for (int64_t r = 0; r < 2048; ++r) y[r * 1024 + c] = x[r * 1024 + c] * 0.25f;
}
