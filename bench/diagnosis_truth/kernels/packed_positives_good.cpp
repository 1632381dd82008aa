// task: packed_positives
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rows = 512, columns = 1024;

/// For each set of eight lanes, those lanes' numbers first.
struct Orders {
  alignas(64) int32_t of[256][8];
  Orders() {
    for (int set = 0; set < 256; ++set) {
      int n = 0;
      for (int lane = 0; lane < 8; ++lane)
        if (set >> lane & 1) of[set][n++] = lane;
      while (n < 8) of[set][n++] = 0;
    }
  }
};
static const Orders orders;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  for (int r = 0; r < rows; ++r, x += columns, y += columns) {
    int n = 0;
    for (int c = 0; c < columns; c += 8) {
      const __m256 v = _mm256_loadu_ps(x + c);
      const int set = _mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GT_OQ));
      const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(orders.of[set]));
      _mm256_storeu_ps(y + n, _mm256_permutevar8x32_ps(v, order));  // up to y + c + 8
      n += __builtin_popcount(set);
    }
    std::memset(y + n, 0, (columns - n) * sizeof(float));
  }
}
