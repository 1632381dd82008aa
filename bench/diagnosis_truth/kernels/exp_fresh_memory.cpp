// task: exp_rows
// good: exp_good
// cause: redundant_work
// or: too_many_passes
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 4096;
  std::vector<float> half(n); // touched for the first time in every call
  for (int64_t i = 0; i < n; ++i) half[i] = x[i] * 0.5f;
  for (int64_t i = 0; i < n; ++i) y[i] = fast_exp(half[i]);
}
