// task: softmax_wide
// good: softmax_two_threads_good
// cause: thread_overhead
// or: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  static float largest[2], sums[2];
#pragma omp parallel num_threads(2)
  for (int r = 0; r < 256; ++r) { // both threads work on each row, and wait for each other three times
    const float* __restrict x = in(args, 0) + r * 2048;
    float* __restrict y = out(args) + r * 2048;
#pragma omp for schedule(static)
    for (int t = 0; t < 2; ++t) largest[t] = largest_of(x + t * 1024, 1024);
    const float m = largest[0] > largest[1] ? largest[0] : largest[1];
#pragma omp for schedule(static)
    for (int t = 0; t < 2; ++t) {
      float s = 0;
      for (int c = t * 1024; c < t * 1024 + 1024; ++c) {
        const float e = x[c] - m < -75 ? 0 : fast_exp(x[c] - m);
        s += y[c] = e;
      }
      sums[t] = s;
    }
    const float inverse = 1 / (sums[0] + sums[1]);
#pragma omp for schedule(static)
    for (int t = 0; t < 2; ++t)
      for (int c = t * 1024; c < t * 1024 + 1024; ++c) y[c] *= inverse;
  }
}
