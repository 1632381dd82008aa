// task: splats
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 256, columns = 512, spots = 128, band = 16, panel = 64;

alignas(64) static float along[columns / panel][spots][panel];  // by panels of columns
alignas(64) static float down[spots][band];

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

/// factor * exp(-steep * (x - centre)^2) at sixteen places x; what is too faint to be seen is nothing.
static inline __m512 spot(__m512 x, float centre, float steep, float factor) {
  const __m512 d = _mm512_sub_ps(x, _mm512_set1_ps(centre));
  const __m512 power = _mm512_mul_ps(_mm512_mul_ps(d, d), _mm512_set1_ps(-1.44269504f * steep));
  const __mmask16 seen = _mm512_cmp_ps_mask(power, _mm512_set1_ps(-55), _CMP_GT_OQ);
  return _mm512_maskz_mul_ps(seen, power_of_two(power), _mm512_set1_ps(factor));
}

static inline float within(float x) { return x < 1 ? 1 : x > 200 ? 200 : x; }

static inline __m512 places(int first, float all) {
  const __m512 lane = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_mul_ps(_mm512_add_ps(lane, _mm512_set1_ps(first + 0.5f)), _mm512_set1_ps(1 / all));
}

/// Four rows of a panel.
static inline void four(const float (*right)[panel], int r, float* y) {
  __m512 sum[4][4];
  for (int i = 0; i < 4; ++i)
    for (int v = 0; v < 4; ++v) sum[i][v] = _mm512_setzero_ps();
  for (int k = 0; k < spots; ++k)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v)
        sum[i][v] = _mm512_fmadd_ps(_mm512_set1_ps(down[k][r + i]), _mm512_load_ps(right[k] + 16 * v), sum[i][v]);
  for (int i = 0; i < 4; ++i)
    for (int v = 0; v < 4; ++v) _mm512_storeu_ps(y + i * columns + 16 * v, sum[i][v]);
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *cx = in(args, 0), *cy = in(args, 1), *sharp = in(args, 2), *w = in(args, 3);
  float* y = out(args);
  for (int p = 0; p < columns / panel; ++p)
    for (int k = 0; k < spots; ++k)
      for (int c = 0; c < panel; c += 16) _mm512_store_ps(&along[p][k][c], spot(places(p * panel + c, columns), cx[k], within(sharp[k]), 1));
  for (int r = 0; r < rows; r += band) {
    for (int k = 0; k < spots; ++k) _mm512_store_ps(down[k], spot(places(r, rows), cy[k], within(sharp[k]), w[k]));
    for (int p = 0; p < columns / panel; ++p)
      for (int i = 0; i < band; i += 4) four(along[p], i, y + (r + i) * columns + p * panel);
  }
}
