// task: gates_of_15
// good: gates_of_15_good
// cause: scalar_tail
// or: not_vectorized
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp-simd
#include "common.hpp"

constexpr int rows = 16384, columns = 15, whole = columns / 8 * 8;

/// The gate of a value that fills no vector.
__attribute__((noinline)) static float gate(float x) { return 1 / (1 + fast_exp(-x)); }

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *bias = in(args, 1);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += columns, y += columns) {
#pragma omp simd simdlen(8)
    for (int c = 0; c < whole; ++c) y[c] = 1 / (1 + fast_exp(-(x[c] + bias[c])));
    for (int c = whole; c < columns; ++c) y[c] = gate(x[c] + bias[c]);
  }
}
