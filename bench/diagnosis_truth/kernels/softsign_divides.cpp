// task: softsign
// good: softsign_good
// cause: divider_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const int64_t n = 128 * 2048;
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i), one = _mm512_set1_ps(1);
    const __m512 root = _mm512_sqrt_ps(_mm512_fmadd_ps(v, v, one));
    __asm__ volatile("" ::: "memory"); // not v * rsqrt: the root is taken, and divided by, each on the divider
    _mm512_storeu_ps(y + i, _mm512_mul_ps(v, _mm512_div_ps(one, root)));
  }
}
