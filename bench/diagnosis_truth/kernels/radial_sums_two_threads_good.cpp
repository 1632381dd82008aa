// task: radial_sums
// unspoilt
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
static inline __m512 power_of_two(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, 8), f = _mm512_sub_ps(x, whole);
  __m512 p = _mm512_set1_ps(1.33335581e-3f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.61812911e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.55041087e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.40226507e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.93147181e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, whole);
}

static inline __m512 bells(__m512 x, __m512 y, const pragma_args* args, int j) {
  const __m512 dx = _mm512_sub_ps(x, _mm512_loadu_ps(in(args, 2) + j)), dy = _mm512_sub_ps(y, _mm512_loadu_ps(in(args, 3) + j));
  const __m512 apart = _mm512_fmadd_ps(dx, dx, _mm512_mul_ps(dy, dy));
  return power_of_two(_mm512_mul_ps(apart, _mm512_load_ps(steep + j)));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  make_steep(in(args, 4));
  const float* w = in(args, 5);
#pragma omp parallel for num_threads(2) schedule(static)
  for (int i = 0; i < points; ++i) {
    const __m512 x = _mm512_set1_ps(in(args, 0)[i]), y = _mm512_set1_ps(in(args, 1)[i]);
    __m512 a = _mm512_setzero_ps(), b = a;
    for (int j = 0; j < centres; j += 32) {
      a = _mm512_fmadd_ps(_mm512_loadu_ps(w + j), bells(x, y, args, j), a);
      b = _mm512_fmadd_ps(_mm512_loadu_ps(w + j + 16), bells(x, y, args, j + 16), b);
    }
    out(args)[i] = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
  }
}
