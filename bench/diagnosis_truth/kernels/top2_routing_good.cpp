// task: top2_routing
// unspoilt
// faster: top2_routing_sixteen_tokens
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

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int token = 0; token < 16384; ++token, x += 16, y += 16) {
    const __m512 v = _mm512_loadu_ps(x);
    const float best = _mm512_reduce_max_ps(v);
    const unsigned first = _mm512_cmp_ps_mask(v, _mm512_set1_ps(best), _CMP_EQ_OQ);
    const float second = _mm512_mask_reduce_max_ps(~(first & -first), v);
    const __mmask16 kept = _mm512_cmp_ps_mask(v, _mm512_set1_ps(second), _CMP_GE_OQ);
    const __m512 e = _mm512_maskz_mov_ps(kept, exp16(v - _mm512_set1_ps(best)));
    _mm512_storeu_ps(y, e * _mm512_set1_ps(1 / _mm512_reduce_add_ps(e)));
  }
}
