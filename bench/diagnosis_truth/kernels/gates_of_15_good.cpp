// task: gates_of_15
// unspoilt
// faster: gates_of_15_wide
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp-simd
#include "common.hpp"

constexpr int rows = 16384, columns = 15, together = 16 * columns;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *bias = in(args, 1);
  float* y = out(args);
  alignas(64) float b[together];
  for (int i = 0; i < together; ++i) b[i] = bias[i % columns];
  for (int r = 0; r < rows; r += 16, x += together, y += together)
#pragma omp simd
    for (int i = 0; i < together; ++i) y[i] = 1 / (1 + fast_exp(-(x[i] + b[i])));
}
