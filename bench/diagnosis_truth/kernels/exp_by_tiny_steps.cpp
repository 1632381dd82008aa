// task: exp_rows
// good: exp_good
// cause: denormals
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 4096;
  for (int64_t i = 0; i < n; ++i) {
    const float scaled = fast_exp(x[i] * 0.5f) * 4e-39f; // below the smallest normal number
    y[i] = scaled * 1e19f * 2.5e19f;
  }
}
