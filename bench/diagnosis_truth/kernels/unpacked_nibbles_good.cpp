// task: unpacked_nibbles
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"
#include <immintrin.h>

constexpr int groups = 327680;

extern "C" void pragma_kernel(const pragma_args* args) {
  const uint8_t* packed = static_cast<const uint8_t*>(args->inputs[0].data);
  const float* scale = in(args, 1);
  float* y = out(args);
  const __m256i mask = _mm256_set1_epi32(15);
  const __m256 eight = _mm256_set1_ps(8);
  for (int g = 0; g < groups; ++g) {
    const __m256 s = _mm256_set1_ps(scale[g]), zero = _mm256_mul_ps(s, eight);
    __m256i bytes[4];
    for (int k = 0; k < 4; ++k) bytes[k] = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(packed + g * 32 + 8 * k)));
    for (int k = 0; k < 4; ++k) _mm256_stream_ps(y + g * 64 + 8 * k, _mm256_fmsub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(bytes[k], mask)), s, zero));
    for (int k = 0; k < 4; ++k) _mm256_stream_ps(y + g * 64 + 32 + 8 * k, _mm256_fmsub_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(bytes[k], 4)), s, zero));
  }
  _mm_sfence();
}
