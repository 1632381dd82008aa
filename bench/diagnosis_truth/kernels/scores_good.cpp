// task: scores_of_31
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

static inline __m512 sigmoid(__m512 v) {
  const __m512 one = _mm512_set1_ps(1);
  const __m512 t = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(v, _mm512_set1_ps(-1.44269504f)), _mm512_set1_ps(-126)), _mm512_set1_ps(126)); // e^-v = 2^t
  const __m512 n = _mm512_roundscale_ps(t, 0);
  const __m512 f = _mm512_sub_ps(t, n);
  __m512 p = _mm512_set1_ps(1.5403530e-4f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.3333558e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(9.6181291e-3f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.5504109e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.4022651e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.9314718e-1f));
  p = _mm512_fmadd_ps(p, f, one);
  return _mm512_div_ps(one, _mm512_add_ps(one, _mm512_scalef_ps(p, n)));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *s = in(args, 1);
  float* y = out(args);
  for (int r = 0; r < 16384; ++r, x += 31, y += 31) {
    const __m512 scale = _mm512_set1_ps(s[r]);
    _mm512_storeu_ps(y, sigmoid(_mm512_mul_ps(_mm512_loadu_ps(x), scale)));
    _mm512_mask_storeu_ps(y + 16, 0x7fff, sigmoid(_mm512_mul_ps(_mm512_maskz_loadu_ps(0x7fff, x + 16), scale)));
  }
}
