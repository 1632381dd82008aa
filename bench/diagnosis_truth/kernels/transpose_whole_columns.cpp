// task: transpose
// good: transpose_good
// cause: strided_access
// or: memory_latency_bound
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int c = 0; c < 1024; ++c)
    for (int r = 0; r < 1024; ++r) y[c * 1024 + r] = x[r * 1024 + c] * 2.0f;
}
