// task: census
// good: census_good
// cause: too_many_passes
// or: store_bandwidth_bound
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 256, columns = 512, shifts = 32, wide = columns + shifts - 1;

alignas(64) static float cost[rows][shifts][columns];

/// What each shift costs at each pixel.
static void fill(const int32_t* left, const int32_t* right, const float* penalty) {
  for (int r = 0; r < rows; ++r, left += columns, right += wide)
    for (int d = 0; d < shifts; ++d) {
      const __m512 more = _mm512_set1_ps(penalty[d]);
#pragma GCC unroll 4
      for (int c = 0; c < columns; c += 16) {
        const __m512i differ = _mm512_xor_si512(_mm512_loadu_si512(left + c), _mm512_loadu_si512(right + c + d));
        _mm512_store_ps(&cost[r][d][c], _mm512_add_ps(_mm512_cvtepi32_ps(_mm512_popcnt_epi32(differ)), more));
      }
    }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  fill(static_cast<const int32_t*>(args->inputs[0].data), static_cast<const int32_t*>(args->inputs[1].data), in(args, 2));
  float* y = out(args);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; c += 64) {
      __m512 best[4];
      for (int k = 0; k < 4; ++k) best[k] = _mm512_load_ps(&cost[r][0][c + 16 * k]);
      for (int d = 1; d < shifts; ++d)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) best[k] = _mm512_min_ps(best[k], _mm512_load_ps(&cost[r][d][c + 16 * k]));
      for (int k = 0; k < 4; ++k) _mm512_storeu_ps(y + r * columns + c + 16 * k, best[k]);
    }
}
