// task: top2_routing
// unspoilt
// written after the rules
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math
#include "common.hpp"

#include <immintrin.h>

/// fast_exp() of sixteen values that are not positive.
static inline __m512 exp16(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-87.3f));
  const __m512 n = _mm512_roundscale_ps(x * _mm512_set1_ps(1.44269504f), 8);
  const __m512 r = x - n * _mm512_set1_ps(0.69314718f);
  __m512 p = _mm512_set1_ps(1.3981999507e-3f);
  p = p * r + _mm512_set1_ps(8.3334519073e-3f);
  p = p * r + _mm512_set1_ps(4.1665795894e-2f);
  p = p * r + _mm512_set1_ps(1.6666665459e-1f);
  p = p * r + _mm512_set1_ps(0.5f);
  p = p * r * r + r + _mm512_set1_ps(1.0f);
  return _mm512_scalef_ps(p, n);
}

/// Rows become columns.
static inline void transpose(__m512 v[16]) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int k = 0; k < 2; ++k) {
      b[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a[i + k]), _mm512_castps_pd(a[i + k + 2])));
      b[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a[i + k]), _mm512_castps_pd(a[i + k + 2])));
    }
  for (int i = 0; i < 16; i += 8)
    for (int k = 0; k < 4; ++k) {
      a[i + k] = _mm512_shuffle_f32x4(b[i + k], b[i + k + 4], 0x88);
      a[i + k + 4] = _mm512_shuffle_f32x4(b[i + k], b[i + k + 4], 0xdd);
    }
  for (int k = 0; k < 8; ++k) {
    v[k] = _mm512_shuffle_f32x4(a[k], a[k + 8], 0x88);
    v[k + 8] = _mm512_shuffle_f32x4(a[k], a[k + 8], 0xdd);
  }
}

/// As top2_routing_good, sixteen tokens at a time: nothing is reduced across a vector, and of the two that are kept only one is no power of 0.
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  const __m512 one = _mm512_set1_ps(1.0f);
  for (int token = 0; token < 16384; token += 16, x += 256, y += 256) {
    __m512 v[16];
    for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_ps(x + 16 * i);
    transpose(v);
    __m512 best = v[0], second = _mm512_set1_ps(-__builtin_inff());
    for (int i = 1; i < 16; ++i) {
      second = _mm512_max_ps(second, _mm512_min_ps(best, v[i]));
      best = _mm512_max_ps(best, v[i]);
    }
    const __m512 less = exp16(second - best);
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < 16; ++i) {
      const __m512 kept = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v[i], second, _CMP_GE_OQ), less);
      v[i] = _mm512_mask_mov_ps(kept, _mm512_cmp_ps_mask(v[i], best, _CMP_EQ_OQ), one);
      sum += v[i];
    }
    const __m512 of_each = one / sum;
    for (int i = 0; i < 16; ++i) v[i] *= of_each;
    transpose(v);
    for (int i = 0; i < 16; ++i) _mm512_storeu_ps(y + 16 * i, v[i]);
  }
}
