// task: gelu
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512 -fopenmp
// threads: 2
#include "common.hpp"

/// The normal distribution, by 7.1.26 of Abramowitz and Stegun.
static inline float distribution(float x) {
  const float z = std::fabs(x) * 0.70710678f, t = 1 / (1 + 0.3275911f * z);
  const float tail = 0.5f * t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) * fast_exp(-z * z);
  return x < 0 ? tail : 1 - tail;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel for simd num_threads(2) schedule(static)
  for (int i = 0; i < 256 * 2048; ++i) y[i] = x[i] * distribution(x[i]);
}
