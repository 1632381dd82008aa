// task: add_large
// good: add_streamed_good
// cause: store_bandwidth_bound
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict z = in(args, 1);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 4096 * 2048; i += 16) _mm512_storeu_ps(y + i, _mm512_add_ps(_mm512_loadu_ps(x + i), _mm512_loadu_ps(z + i)));
}
