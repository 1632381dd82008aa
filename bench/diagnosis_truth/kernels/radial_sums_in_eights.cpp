// task: radial_sums
// good: radial_sums_two_threads_good
// cause: not_vectorized
// written after the rules
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <immintrin.h>

constexpr int points = 4096, centres = 512;

alignas(64) static float steep[centres];

/// How steep each bell is, in powers of two.
static void make_steep(const float* g) {
  for (int j = 0; j < centres; ++j) steep[j] = -1.44269504f * (g[j] < 0 ? 0 : g[j] > 20 ? 20 : g[j]);
}

/// 2^x by a polynomial on [-1/2, 1/2].
static inline __m256 power_of_two(__m256 x) {
  const __m256 whole = _mm256_roundscale_ps(x, 8), f = _mm256_sub_ps(x, whole);
  __m256 p = _mm256_set1_ps(1.33335581e-3f);
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(9.61812911e-3f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(5.55041087e-2f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(2.40226507e-1f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(6.93147181e-1f));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1));
  return _mm256_scalef_ps(p, whole);
}

static inline __m256 bells(__m256 x, __m256 y, const pragma_args* args, int j) {
  const __m256 dx = _mm256_sub_ps(x, _mm256_loadu_ps(in(args, 2) + j)), dy = _mm256_sub_ps(y, _mm256_loadu_ps(in(args, 3) + j));
  const __m256 apart = _mm256_fmadd_ps(dx, dx, _mm256_mul_ps(dy, dy));
  return power_of_two(_mm256_mul_ps(apart, _mm256_load_ps(steep + j)));
}

static inline float total(__m256 x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  make_steep(in(args, 4));
  const float* w = in(args, 5);
#pragma omp parallel for num_threads(2) schedule(static)
  for (int i = 0; i < points; ++i) {
    const __m256 x = _mm256_set1_ps(in(args, 0)[i]), y = _mm256_set1_ps(in(args, 1)[i]);
    __m256 a = _mm256_setzero_ps(), b = a;
    for (int j = 0; j < centres; j += 16) {
      a = _mm256_fmadd_ps(_mm256_loadu_ps(w + j), bells(x, y, args, j), a);
      b = _mm256_fmadd_ps(_mm256_loadu_ps(w + j + 8), bells(x, y, args, j + 8), b);
    }
    out(args)[i] = total(_mm256_add_ps(a, b));
  }
}
