// task: radial_sums
// good: radial_sums_two_threads_good
// cause: false_sharing
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

/// Sixteen centres.
struct group {
  __m512 x, y, steep, weight;
};

static inline group of(const pragma_args* args, int j) {
  return {_mm512_loadu_ps(in(args, 2) + j), _mm512_loadu_ps(in(args, 3) + j), _mm512_load_ps(steep + j), _mm512_loadu_ps(in(args, 5) + j)};
}

static inline __m512 bells(__m512 x, __m512 y, const group& g) {
  const __m512 dx = _mm512_sub_ps(x, g.x), dy = _mm512_sub_ps(y, g.y);
  const __m512 apart = _mm512_fmadd_ps(dx, dx, _mm512_mul_ps(dy, dy));
  return _mm512_mul_ps(g.weight, power_of_two(_mm512_mul_ps(apart, g.steep)));
}

/// 32 centres stay in registers while the points go by, dealt out in turn to the threads.
extern "C" void pragma_kernel(const pragma_args* args) {
  make_steep(in(args, 4));
  const float *px = in(args, 0), *py = in(args, 1);
  float* sums = out(args);
#pragma omp parallel num_threads(2)
  for (int j = 0; j < centres; j += 32) {
    const group g = of(args, j), h = of(args, j + 16);
#pragma omp for schedule(static, 1) nowait
    for (int i = 0; i < points; ++i) {
      const __m512 x = _mm512_set1_ps(px[i]), y = _mm512_set1_ps(py[i]);
      const float sum = _mm512_reduce_add_ps(_mm512_add_ps(bells(x, y, g), bells(x, y, h)));
      sums[i] = j ? sums[i] + sum : sum;
    }
  }
}
