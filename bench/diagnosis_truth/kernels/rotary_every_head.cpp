// task: rotary
// good: rotary_good
// cause: too_many_passes
// or: port_pressure
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int heads = 32, positions = 256, half = 32, block = 16;

/// Sine and cosine of an angle by a quarter turn's polynomials.
static inline void turn(float angle, float* sine, float* cosine) {
  const float n = __builtin_floorf(angle * 0.636619772f + 0.5f);
  const float r = (angle - n * 1.57079637f) + n * 4.37113900e-8f, q = r * r;
  const float s = r + r * q * (-1.6666654611e-1f + q * (8.3321608736e-3f - q * 1.9515295891e-4f));
  const float c = 1 - 0.5f * q + q * q * (4.166664568298827e-2f + q * (-1.388731625493765e-3f + q * 2.443315711809948e-5f));
  const int32_t quarter = static_cast<int32_t>(n);
  int32_t si, ci;
  std::memcpy(&si, &s, 4);
  std::memcpy(&ci, &c, 4);
  const int32_t odd = -(quarter & 1);
  const int32_t sine_bits = ((si & ~odd) | (ci & odd)) ^ ((quarter & 2) << 30);
  const int32_t cosine_bits = ((ci & ~odd) | (si & odd)) ^ (((quarter + 1) & 2) << 30);
  std::memcpy(sine, &sine_bits, 4);
  std::memcpy(cosine, &cosine_bits, 4);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *angles = in(args, 1);
  float* y = out(args);
  alignas(64) float sine[block * half], cosine[block * half];
  for (int h = 0; h < heads; ++h)
    for (int first = 0; first < positions; first += block) {
#pragma omp simd
      for (int i = 0; i < block * half; ++i) turn(angles[first * half + i], sine + i, cosine + i);
      for (int p = 0; p < block; ++p) {
        const int at = (h * positions + first + p) * 2 * half;
        const float *a = x + at, *b = a + half, *s = sine + p * half, *c = cosine + p * half;
        float *ya = y + at, *yb = ya + half;
#pragma GCC ivdep
        for (int i = 0; i < half; ++i) {
          ya[i] = a[i] * c[i] - b[i] * s[i];
          yb[i] = b[i] * c[i] + a[i] * s[i];
        }
      }
    }
}
