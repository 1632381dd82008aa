// task: softmax_wide
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
#pragma omp parallel for num_threads(2) schedule(static)
  for (int r = 0; r < 256; ++r) {
    const float* __restrict x = in(args, 0) + r * 2048;
    float* __restrict y = out(args) + r * 2048;
    const float m = largest_of(x, 2048);
    float s = 0;
    for (int c = 0; c < 2048; ++c) {
      const float e = x[c] - m < -75 ? 0 : fast_exp(x[c] - m);
      s += y[c] = e;
    }
    const float inverse = 1 / s;
    for (int c = 0; c < 2048; ++c) y[c] *= inverse;
  }
}
