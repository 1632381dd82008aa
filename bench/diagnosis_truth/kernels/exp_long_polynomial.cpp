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
    const float r = x[i] * (0.5f / 64);
    float p = 1.0f / 39916800; // degree 11 of exp(x / 64), then six squarings: three times the operations that are needed
    for (float c : {1.0f / 3628800, 1.0f / 362880, 1.0f / 40320, 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
    for (int s = 0; s < 6; ++s) p = p * p;
    y[i] = p;
  }
}
