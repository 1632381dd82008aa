// task: softmax
// unspoilt
// faster: softmax_past_the_caches
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 512; ++r, x += 8192, y += 8192) {
    const float m = largest_of(x, 8192);
    float s = 0;
    for (int c = 0; c < 8192; ++c) s += y[c] = fast_exp(x[c] - m);
    const float inverse = 1 / s;
    for (int c = 0; c < 8192; ++c) y[c] *= inverse;
  }
}
