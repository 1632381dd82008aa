// task: ragged_exp_mean
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp
// threads: 2
#include "common.hpp"

constexpr int rows = 1024, width = 2048;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *__restrict x = in(args, 0), *__restrict u = in(args, 1);
  float* __restrict y = out(args);
#pragma omp parallel for num_threads(2) schedule(dynamic, 16)
  for (int r = 0; r < rows; ++r) {
    int n = static_cast<int>(u[r] * 2047);
    n = (n < 0 ? 0 : n > 2047 ? 2047 : n) + 1;
    const float* row = x + r * width;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < n; ++c) sum += fast_exp(row[c]);
    y[r] = sum / n;
  }
}
