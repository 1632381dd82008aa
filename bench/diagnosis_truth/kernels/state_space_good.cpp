// task: state_space
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int sequences = 64, steps = 512, width = 8, together = 4;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *w = in(args, 1);
  float* y = out(args);
  v8 from[width];  // what each state adds to the next ones
  for (int k = 0; k < width; ++k) from[k] = *reinterpret_cast<const v8*>(w + k * width);
  for (int first = 0; first < sequences; first += together) {
    v8 states[together] = {};
    for (int t = 0; t < steps; ++t)
#pragma GCC unroll 4
      for (int s = 0; s < together; ++s) {
        const int at = ((first + s) * steps + t) * width;
        const v8 h = states[s];
        const v8 low = _mm256_permute2f128_ps(h, h, 0x00), high = _mm256_permute2f128_ps(h, h, 0x11);
        v8 a = *reinterpret_cast<const v8*>(x + at), b = {};
        a += _mm256_permute_ps(low, 0x00) * from[0];
        b += _mm256_permute_ps(low, 0x55) * from[1];
        a += _mm256_permute_ps(low, 0xaa) * from[2];
        b += _mm256_permute_ps(low, 0xff) * from[3];
        a += _mm256_permute_ps(high, 0x00) * from[4];
        b += _mm256_permute_ps(high, 0x55) * from[5];
        a += _mm256_permute_ps(high, 0xaa) * from[6];
        b += _mm256_permute_ps(high, 0xff) * from[7];
        states[s] = a + b;
        *reinterpret_cast<v8*>(y + at) = states[s];
      }
  }
}
