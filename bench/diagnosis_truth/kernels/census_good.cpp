// task: census
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 256, columns = 512, shifts = 32, wide = columns + shifts - 1;

/// 64 pixels at a time through all the shifts.
extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* left = static_cast<const int32_t*>(args->inputs[0].data);
  const int32_t* right = static_cast<const int32_t*>(args->inputs[1].data);
  const float* penalty = in(args, 2);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, left += columns, right += wide, y += columns)
    for (int c = 0; c < columns; c += 64) {
      __m512i code[4];
      __m512 best[4];
      for (int k = 0; k < 4; ++k) {
        code[k] = _mm512_loadu_si512(left + c + 16 * k);
        best[k] = _mm512_set1_ps(1e9f);
      }
      for (int d = 0; d < shifts; ++d) {
        const __m512 more = _mm512_set1_ps(penalty[d]);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const __m512i differ = _mm512_xor_si512(code[k], _mm512_loadu_si512(right + c + d + 16 * k));
          best[k] = _mm512_min_ps(best[k], _mm512_add_ps(_mm512_cvtepi32_ps(_mm512_popcnt_epi32(differ)), more));
        }
      }
      for (int k = 0; k < 4; ++k) _mm512_storeu_ps(y + c + 16 * k, best[k]);
    }
}
