// task: black_scholes
// unspoilt
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd -mprefer-vector-width=512
#include "common.hpp"

/// log() of a positive, normal float.
static inline float fast_log(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, 4);
  const int32_t e = (bits - 0x3f3504f3) >> 23; // mantissas from sqrt(1/2) to sqrt(2)
  bits -= e << 23;
  float f;
  std::memcpy(&f, &bits, 4);
  f -= 1;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float f2 = f * f;
  return f + (p * f2 * f - 0.5f * f2) + static_cast<float>(e) * 0.69314718f;
}

/// The share of a normal distribution that lies below x (Abramowitz and Stegun 26.2.17).
static inline float below(float x) {
  const float a = __builtin_fabsf(x), t = 1 / (1 + 0.2316419f * a);
  float p = 1.330274429f;
  p = p * t - 1.821255978f;
  p = p * t + 1.781477937f;
  p = p * t - 0.356563782f;
  p = p * t + 0.319381530f;
  const float above = 0.39894228f * fast_exp(-0.5f * a * a) * p * t;
  return x < 0 ? above : 1 - above;
}

static inline float within(float x, float least, float most) { return x < least ? least : x > most ? most : x; }

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *spot = in(args, 0), *strike = in(args, 1), *years = in(args, 2);
  float* price = out(args);
#pragma omp simd
  for (int i = 0; i < 131072; ++i) {
    const float s = within(spot[i], 1, 1000), k = within(strike[i], 1, 1000), t = within(years[i], 0.01f, 10);
    const float wide = 0.2f * __builtin_sqrtf(t);
    const float d1 = (fast_log(s / k) + 0.05f * t) / wide;
    price[i] = s * below(d1) - k * fast_exp(-0.03f * t) * below(d1 - wide);
  }
}
