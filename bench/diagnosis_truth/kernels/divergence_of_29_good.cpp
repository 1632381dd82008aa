// task: divergence_of_29
// unspoilt
// faster: divergence_of_29_wide
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp-simd
#include "common.hpp"

constexpr int rows = 16384, width = 29;

/// log() of a positive normal float: the exponent, and a polynomial of the mantissa between sqrt(1/2) and sqrt(2).
static inline float fast_log(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, 4);
  const int32_t e = (bits - 0x3f3504f3) >> 23;
  bits -= e << 23;
  float m;
  std::memcpy(&m, &bits, 4);
  const float f = m - 1, q = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  return f + (p * f * q - 0.5f * q) + e * 0.693147181f;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *__restrict p = in(args, 0), *__restrict q = in(args, 1);
  float* __restrict y = out(args);
  for (int r = 0; r < rows; ++r) {
    const float *a = p + r * width, *b = q + r * width;
    float first[16], last[16];
    // The last 16 of a row begin within the first 16: what both have is counted once.
#pragma omp simd
    for (int l = 0; l < 16; ++l) first[l] = a[l] * (fast_log(a[l]) - fast_log(b[l]));
#pragma omp simd
    for (int l = 0; l < 16; ++l) last[l] = l < 32 - width ? 0 : a[width - 16 + l] * (fast_log(a[width - 16 + l]) - fast_log(b[width - 16 + l]));
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < 16; ++l) sum += first[l] + last[l];
    y[r] = sum;
  }
}
