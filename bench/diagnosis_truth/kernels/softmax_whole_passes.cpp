// task: softmax
// good: softmax_good
// cause: too_many_passes
// or: memory_bandwidth_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  static float m[512], s[512];
  for (int r = 0; r < 512; ++r) m[r] = largest_of(x + r * 8192, 8192);
  for (int r = 0; r < 512; ++r)
    for (int c = 0; c < 8192; ++c) y[r * 8192 + c] = x[r * 8192 + c] - m[r];
  for (int r = 0; r < 512; ++r)
    for (int c = 0; c < 8192; ++c) y[r * 8192 + c] = fast_exp(y[r * 8192 + c]);
  for (int r = 0; r < 512; ++r) {
    float sum = 0;
    for (int c = 0; c < 8192; ++c) sum += y[r * 8192 + c];
    s[r] = 1 / sum;
  }
  for (int r = 0; r < 512; ++r)
    for (int c = 0; c < 8192; ++c) y[r * 8192 + c] *= s[r];
}
