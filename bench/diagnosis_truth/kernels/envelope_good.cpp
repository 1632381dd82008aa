// task: envelope
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); // what nobody hears is zero
  __m512 e[4] = {};
  const __m512 fall = _mm512_set1_ps(0.9f);
  for (int t = 0; t < 8192; ++t)
    for (int k = 0; k < 4; ++k, x += 16, y += 16) {
      e[k] = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x)), e[k] * fall);
      _mm512_storeu_ps(y, e[k]);
    }
  _mm_setcsr(before);
}
