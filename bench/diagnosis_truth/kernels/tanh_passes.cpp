// task: tanh_rows
// good: tanh_good
// cause: too_many_passes
// or: memory_bandwidth_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

static float twice[128 * 4096], power[128 * 4096], sum[128 * 4096];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int n = 128 * 4096;
  const auto fence = [] { __asm__ volatile("" ::: "memory"); }; // four loops over whole arrays stay four
  for (int i = 0; i < n; ++i) twice[i] = 2 * x[i];
  fence();
  for (int i = 0; i < n; ++i) power[i] = fast_exp(twice[i]);
  fence();
  for (int i = 0; i < n; ++i) sum[i] = power[i] + 1;
  fence();
  for (int i = 0; i < n; ++i) {
    const float a = x[i], q = a * a, small = a * (1 - q * (1.0f / 3 - q * (2.0f / 15 - q * (17.0f / 315))));
    y[i] = q < 0.01f ? small : 1 - 2 / sum[i];
  }
}
