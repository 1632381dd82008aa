// task: exp_rows
// unspoilt
// written after the rules
// flags: -O3 -march=native -mprefer-vector-width=512 -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 4096;
  for (int64_t i = 0; i < n; ++i) y[i] = fast_exp(x[i] * 0.5f);
}
