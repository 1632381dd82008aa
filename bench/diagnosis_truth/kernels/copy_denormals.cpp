// task: copy_scale
// good: copy_good
// cause: denormals
// flags: -O3 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  volatile float tiny = 1e-39f, back = 0.25e39f / 1e9f, rest = 1e9f;
  const float a = tiny, b = back, c = rest;
  for (int64_t i = 0; i < 2048 * 1024; ++i) y[i] = x[i] * 0.25f + x[i] * a * b * c * 0.0f; // a product in the range of denormals, for nothing
}
