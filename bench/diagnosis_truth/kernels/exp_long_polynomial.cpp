// task: exp_rows
// good: exp_good
// cause: port_pressure
// or: dependency_chain
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 4096;
  for (int64_t i = 0; i < n; ++i) {
    const float r = x[i] * 0.5f;
    float p = 1; // Taylor's series as far as 40 terms, where range reduction and six would do
#pragma GCC unroll 40
    for (int k = 40; k > 0; --k) p = p * (r * (1.0f / k)) + 1.0f;
    y[i] = p;
  }
}
