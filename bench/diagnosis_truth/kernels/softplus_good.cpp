// task: softplus
// unspoilt
// faster: softplus_wide
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp-simd
#include "common.hpp"

/// log(1 + t) / t for 0 <= t <= 1.
static inline float log_share(float t) {
  float p = -8.574676205e-03f;
  p = p * t + 4.421419234e-02f;
  p = p * t + -1.078536792e-01f;
  p = p * t + 1.775702399e-01f;
  p = p * t + -2.449961172e-01f;
  p = p * t + 3.327617657e-01f;
  p = p * t + -4.999744938e-01f;
  p = p * t + 9.999998102e-01f;
  return p;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp simd
  for (int i = 0; i < 256 * 1024; ++i) {
    const float t = fast_exp(-std::fabs(x[i]));
    y[i] = (x[i] > 0 ? x[i] : 0) + t * log_share(t);
  }
}
