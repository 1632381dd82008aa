// task: softsign
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 2048;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i), s = _mm512_fmadd_ps(v, v, _mm512_set1_ps(1));
    __m512 r = _mm512_rsqrt14_ps(s);
    const __m512 h = _mm512_mul_ps(_mm512_mul_ps(s, r), r);
    r = _mm512_mul_ps(r, _mm512_fnmadd_ps(_mm512_set1_ps(0.5f), h, _mm512_set1_ps(1.5f)));
    _mm512_storeu_ps(y + i, _mm512_mul_ps(v, r));
    // A square beyond what float32 holds: its root is taken, and divided by, where a vector has one.
    if (__builtin_expect(_mm512_cmp_ps_mask(s, _mm512_set1_ps(1e37f), _CMP_NLE_UQ) != 0, 0)) _mm512_storeu_ps(y + i, _mm512_div_ps(v, _mm512_sqrt_ps(s)));
  }
}
