// task: upsample
// unspoilt
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
        if (reinterpret_cast<uintptr_t>(y) % 32 == 0) {
          _mm256_stream_ps(to + 2 * c, _mm256_permute2f128_ps(l, h, 0x20));
          _mm256_stream_ps(to + 2 * c + 8, _mm256_permute2f128_ps(l, h, 0x31));
        } else {  // memory from malloc() is at a multiple of 16
          _mm_stream_ps(to + 2 * c, _mm256_castps256_ps128(l));
          _mm_stream_ps(to + 2 * c + 4, _mm256_castps256_ps128(h));
          _mm_stream_ps(to + 2 * c + 8, _mm256_extractf128_ps(l, 1));
          _mm_stream_ps(to + 2 * c + 12, _mm256_extractf128_ps(h, 1));
        }
      }
    }
  }
  _mm_sfence();
}
