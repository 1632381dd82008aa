// task: gated_rows
// good: gated_good
// cause: bad_speculation
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *gate = in(args, 1);
  float* y = out(args);
  const __m512 one = _mm512_set1_ps(1), half = _mm512_set1_ps(0.5f);
  for (int r = 0; r < 49152; ++r) {
    const __m512 v = _mm512_loadu_ps(x + r * 16);
    if (gate[r] > 0)
      _mm512_storeu_ps(y + r * 16, _mm512_fmadd_ps(v, half, one));
    else
      _mm512_storeu_ps(y + r * 16, _mm512_fmsub_ps(v, v, one));
  }
}
