// task: running_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

/// Lane k becomes the sum of lanes 0 to k.
static inline __m512 scan(__m512 v) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  v = _mm512_add_ps(v, _mm512_maskz_permutexvar_ps(0xfffe, _mm512_sub_epi32(lane, _mm512_set1_epi32(1)), v));
  v = _mm512_add_ps(v, _mm512_maskz_permutexvar_ps(0xfffc, _mm512_sub_epi32(lane, _mm512_set1_epi32(2)), v));
  v = _mm512_add_ps(v, _mm512_maskz_permutexvar_ps(0xfff0, _mm512_sub_epi32(lane, _mm512_set1_epi32(4)), v));
  return _mm512_add_ps(v, _mm512_maskz_permutexvar_ps(0xff00, _mm512_sub_epi32(lane, _mm512_set1_epi32(8)), v));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  const __m512i last = _mm512_set1_epi32(15);
  for (int r = 0; r < 512; ++r) {
    __m512 before = _mm512_setzero_ps();
    for (int c = 0; c < 2048; c += 16, x += 16, y += 16) {
      const __m512 here = scan(_mm512_loadu_ps(x));
      _mm512_storeu_ps(y, _mm512_add_ps(here, before));
      before = _mm512_add_ps(before, _mm512_permutexvar_ps(last, here));
    }
  }
}
