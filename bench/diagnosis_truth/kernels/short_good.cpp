// task: short_rows
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 65536; ++r, x += 23) { // one masked vector and one full
    const __m512 a = _mm512_loadu_ps(x), b = _mm512_maskz_loadu_ps(0x7f, x + 16);
    y[r] = _mm512_reduce_add_ps(_mm512_fmadd_ps(a, a, _mm512_mul_ps(b, b)));
  }
}
