// task: softmax
// unspoilt
// written after the rules
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

/// What is stored past the caches need not be read first: exponentials of a row lie in a buffer that L1 holds, and results are written once.
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  static thread_local float row[8192];
  for (int r = 0; r < 512; ++r, x += 8192, y += 8192) {
    const float m = largest_of(x, 8192);
    float s = 0;
    for (int c = 0; c < 8192; ++c) s += row[c] = fast_exp(x[c] - m);
    const __m256 inverse = _mm256_set1_ps(1 / s);
    for (int c = 0; c < 8192; c += 8) _mm256_stream_ps(y + c, _mm256_mul_ps(_mm256_loadu_ps(row + c), inverse));
  }
  _mm_sfence();
}
