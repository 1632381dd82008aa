// task: small_lu
// good: small_lu_good
// cause: divider_bound
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int matrices = 1024, n = 16;

/// One lane in all lanes.
static inline __m512 spread(__m512 x, int lane) { return _mm512_permutexvar_ps(_mm512_set1_epi32(lane), x); }

/// A matrix in sixteen registers.
static inline void factor(const float* a, const float* shift, float* lu) {
  __m512 row[n];
  const __m512 more = _mm512_add_ps(_mm512_loadu_ps(shift), _mm512_set1_ps(8));
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    row[i] = _mm512_loadu_ps(a + n * i);
    row[i] = _mm512_mask_add_ps(row[i], 1 << i, row[i], more);
  }
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) {
    const __m512 pivot = spread(row[k], k);
#pragma GCC unroll 16
    for (int i = k + 1; i < n; ++i) {
      const __m512 l = _mm512_div_ps(spread(row[i], k), pivot);
      row[i] = _mm512_mask_mov_ps(row[i], 1 << k, l);
      row[i] = _mm512_mask3_fnmadd_ps(l, row[k], row[i], 0xfffe << k & 0xffff);
    }
    _mm512_storeu_ps(lu + n * k, row[k]);
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  for (int m = 0; m < matrices; ++m) factor(in(args, 0) + m * n * n, in(args, 1), out(args) + m * n * n);
}
