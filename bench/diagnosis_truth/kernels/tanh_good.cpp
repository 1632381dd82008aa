// task: tanh_rows
// unspoilt
// faster: tanh_wide
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 128 * 4096; ++i) {
    const float a = x[i] < -9 ? -9 : x[i] > 9 ? 9 : x[i], q = a * a;
    const float large = 1 - 2 / (fast_exp(2 * a) + 1), small = a * (1 - q * (1.0f / 3 - q * (2.0f / 15 - q * (17.0f / 315))));
    y[i] = q < 0.01f ? small : large;
  }
}
