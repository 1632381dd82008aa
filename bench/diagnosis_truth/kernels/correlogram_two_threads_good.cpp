// task: correlogram
// unspoilt
// written after the rules
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512 -fopenmp
// threads: 2
#include "common.hpp"

constexpr int n = 8192, lags = 4;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp parallel for num_threads(2) schedule(dynamic, 32)
  for (int lag = 0; lag < n; lag += lags) {
    float a = 0, b = 0, c = 0, d = 0;
    const float* later = x + lag;
    const int all = n - lag - 3; // products that each of the four lags has
#pragma omp simd reduction(+ : a, b, c, d)
    for (int i = 0; i < all; ++i) {
      a += x[i] * later[i];
      b += x[i] * later[i + 1];
      c += x[i] * later[i + 2];
      d += x[i] * later[i + 3];
    }
    for (int i = all; i < all + 3; ++i) a += x[i] * later[i];
    for (int i = all; i < all + 2; ++i) b += x[i] * later[i + 1];
    c += x[all] * later[all + 2];
    y[lag] = a * (1.0f / n);
    y[lag + 1] = b * (1.0f / n);
    y[lag + 2] = c * (1.0f / n);
    y[lag + 3] = d * (1.0f / n);
  }
}
