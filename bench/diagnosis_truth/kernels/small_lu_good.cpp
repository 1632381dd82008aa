// task: small_lu
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int matrices = 1024, n = 16;

/// One lane in all lanes.
static inline __m512 spread(__m512 x, int lane) { return _mm512_permutexvar_ps(_mm512_set1_epi32(lane), x); }

/// A matrix in sixteen registers. Columns of L are divided by their pivots only at the end, row by row.
static inline void factor(const float* a, const float* shift, float* lu) {
  __m512 row[n], over = _mm512_set1_ps(1);
  const __m512 more = _mm512_add_ps(_mm512_loadu_ps(shift), _mm512_set1_ps(8));
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    row[i] = _mm512_loadu_ps(a + n * i);
    row[i] = _mm512_mask_add_ps(row[i], 1 << i, row[i], more);
  }
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) {
    const float pivot = _mm512_cvtss_f32(spread(row[k], k));
    const __m512 r = _mm512_set1_ps(1 / pivot);
    const __m512 u = _mm512_maskz_mul_ps(0xfffe << k & 0xffff, row[k], r);
#pragma GCC unroll 16
    for (int i = k + 1; i < n; ++i) row[i] = _mm512_fnmadd_ps(spread(row[i], k), u, row[i]);
    _mm512_storeu_ps(lu + n * k, _mm512_mul_ps(row[k], over));
    over = _mm512_mask_mov_ps(over, 1 << k, r);
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int m = 0; m < matrices; ++m) factor(in(args, 0) + m * n * n, in(args, 1), out(args) + m * n * n);
}
