// task: upsample
// good: upsample_good
// cause: store_bandwidth_bound
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int size = 512, wide = 2 * size;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < 12 * size; ++r, x += size, y += 2 * wide) {
    for (int twice = 0; twice < 2; ++twice) {
      float* to = y + twice * wide;
      for (int c = 0; c < size; c += 8) {
        const __m256 v = _mm256_loadu_ps(x + c), l = _mm256_unpacklo_ps(v, v), h = _mm256_unpackhi_ps(v, v);
        const __m256 one = _mm256_permute2f128_ps(l, h, 0x20), two = _mm256_permute2f128_ps(l, h, 0x31);
        _mm256_storeu_ps(to + 2 * c, one);
        _mm256_storeu_ps(to + 2 * c + 8, two);
      }
    }
  }
}
