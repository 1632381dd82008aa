// task: continued_fraction
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int n = 1024 * 1024, levels = 8;

static inline float fraction(float x, const float* a) {
  float over = a[levels - 1], under = 1;
  for (int k = levels - 2; k >= 0; --k) {
    const float next = a[k] * over + x * under;
    under = over;
    over = next;
  }
  return over / under;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  float a[levels];
  std::memcpy(a, in(args, 1), sizeof a);
#pragma omp simd
  for (int i = 0; i < n; ++i) y[i] = fraction(x[i], a);
}
