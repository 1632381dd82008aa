// task: complex_product
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *a = in(args, 0), *b = in(args, 1);
  float* y = out(args);
  for (int i = 0; i < 2 * 131072; i += 8) {
    const __m256 p = _mm256_loadu_ps(a + i), q = _mm256_loadu_ps(b + i);
    const __m256 turned = _mm256_permute_ps(q, 0xb1) * _mm256_movehdup_ps(p);
    _mm256_storeu_ps(y + i, _mm256_fmaddsub_ps(_mm256_moveldup_ps(p), q, turned));
  }
}
