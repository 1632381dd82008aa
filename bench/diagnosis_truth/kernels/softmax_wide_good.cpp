// task: softmax_wide
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r, x += 2048, y += 2048) {
    const float m = largest_of(x, 2048);
    float s = 0;
    for (int c = 0; c < 2048; ++c) {
      const float e = x[c] - m < -75 ? 0 : fast_exp(x[c] - m); // nothing beside the largest, which is 1
      s += y[c] = e;
    }
    const float inverse = 1 / s;
    for (int c = 0; c < 2048; ++c) y[c] *= inverse;
  }
}
