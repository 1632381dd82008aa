// task: softmax_wide
// good: softmax_wide_good
// cause: denormals
// flags: -O3 -march=native -fassociative-math -fno-signed-zeros -fno-trapping-math -fno-math-errno -ffinite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r, x += 2048, y += 2048) {
    const float m = largest_of(x, 2048);
    float s = 0;
    for (int c = 0; c < 2048; ++c) {
      const float half = fast_exp(0.5f * (x[c] - m));
      s += y[c] = half * half; // down to 1e-45
    }
    const float inverse = 1 / s;
    for (int c = 0; c < 2048; ++c) y[c] *= inverse;
  }
}
