// task: outer_products
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *u = in(args, 0), *v = in(args, 1);
  float* y = out(args);
  for (int b = 0; b < 48; ++b, v += 512)
    for (int i = 0; i < 384; ++i) {
      const __m512 factor = _mm512_set1_ps(*u++);
      for (int j = 0; j < 512; j += 16, y += 16) _mm512_stream_ps(y, _mm512_mul_ps(factor, _mm512_loadu_ps(v + j)));
    }
  _mm_sfence();
}
