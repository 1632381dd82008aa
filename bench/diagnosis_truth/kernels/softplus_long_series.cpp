// task: softplus
// good: softplus_good
// cause: port_pressure
// or: too_many_passes
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp-simd
#include "common.hpp"

/// exp() by its series after a power of two is taken out.
static inline float series_exp(float x) {
  x = x < -87.3f ? -87.3f : x;
  const float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 4.779477332e-14f;
  p = p * r + 7.647163732e-13f;
  p = p * r + 1.147074560e-11f;
  p = p * r + 1.605904384e-10f;
  p = p * r + 2.087675699e-09f;
  p = p * r + 2.505210839e-08f;
  p = p * r + 2.755731922e-07f;
  p = p * r + 2.755731922e-06f;
  p = p * r + 2.480158730e-05f;
  p = p * r + 1.984126984e-04f;
  p = p * r + 1.388888889e-03f;
  p = p * r + 8.333333333e-03f;
  p = p * r + 4.166666667e-02f;
  p = p * r + 1.666666667e-01f;
  p = p * r + 5.000000000e-01f;
  p = p * r + 1.000000000e+00f;
  p = p * r + 1.000000000e+00f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, 4);
  return p * scale;
}

/// log(1 + t) by its series around one half.
static inline float series_log(float t) {
  const float u = t - 0.5f;
  float p = -1.503643299e-05f;
  p = p * u + 2.374173630e-05f;
  p = p * u + -3.759108248e-05f;
  p = p * u + 5.970348394e-05f;
  p = p * u + -9.515242752e-05f;
  p = p * u + 1.522438840e-04f;
  p = p * u + -2.446776708e-04f;
  p = p * u + 3.952485451e-04f;
  p = p * u + -6.422788858e-04f;
  p = p * u + 1.051001813e-03f;
  p = p * u + -1.734152992e-03f;
  p = p * u + 2.890254986e-03f;
  p = p * u + -4.877305289e-03f;
  p = p * u + 8.361094781e-03f;
  p = p * u + -1.463191587e-02f;
  p = p * u + 2.633744856e-02f;
  p = p * u + -4.938271605e-02f;
  p = p * u + 9.876543210e-02f;
  p = p * u + -2.222222222e-01f;
  p = p * u + 6.666666667e-01f;
  p = p * u + 4.054651081e-01f;
  return p;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp simd
  for (int i = 0; i < 256 * 1024; ++i) y[i] = (x[i] > 0 ? x[i] : 0) + series_log(series_exp(-std::fabs(x[i])));
}
