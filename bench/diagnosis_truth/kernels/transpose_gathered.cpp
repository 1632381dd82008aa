// task: transpose
// good: transpose_good
// cause: strided_access
// or: memory_latency_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  const __m512i down = _mm512_mullo_epi32(_mm512_set1_epi32(1024), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  for (int c = 0; c < 1024; ++c)
    for (int r = 0; r < 1024; r += 16) _mm512_storeu_ps(y + c * 1024 + r, _mm512_mul_ps(_mm512_i32gather_ps(down, x + r * 1024 + c, 4), _mm512_set1_ps(2)));
}
