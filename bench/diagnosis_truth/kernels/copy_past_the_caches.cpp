// task: copy_scale
// unspoilt
// written after the rules
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

#include <immintrin.h>

/// Outputs begin on lines of 64 bytes (pragma_kernel.h): what is stored past the caches need not be read first.
extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  const __m256 quarter = _mm256_set1_ps(0.25f);
  for (int64_t i = 0; i < 2048 * 1024; i += 8) _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), quarter));
  _mm_sfence();
}
