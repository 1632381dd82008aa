// task: pair_distances
// good: pair_distances_two_threads_good
// cause: load_imbalance
// flags: -O3 -march=native -fno-math-errno -fopenmp
// threads: 2
#include "common.hpp"

constexpr int n = 768, width = 32, tile = 32;
alignas(64) static float across[width][n + 16];

/// The distances of two rows, row being even, to those after them.
static void two_rows(int row, const float* x, float* y) {
  const float *a = x + row * width, *b = a + width;
  float* to[2] = {y + row * (2 * n - row - 1) / 2, y + (row + 1) * (2 * n - row - 2) / 2};
  for (int first = (row + 1) / tile * tile; first < n; first += tile) {
    v8 sums[2][4] = {};
    for (int k = 0; k < width; ++k)
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        const v8 v = *reinterpret_cast<const v8*>(&across[k][first + 8 * c]), p = v - a[k], q = v - b[k];
        sums[0][c] += p * p;
        sums[1][c] += q * q;
      }
    alignas(64) float found[2][tile];
    for (int i = 0; i < 2; ++i)
      for (int c = 0; c < 4; ++c) *reinterpret_cast<v8*>(found[i] + 8 * c) = sums[i][c];
    for (int i = 0; i < 2; ++i) {
      const int skip = row + i + 1 > first ? row + i + 1 - first : 0;
      float* y_row = to[i] + first - (row + i + 1);
      for (int c = skip; c < tile; ++c) y_row[c] = std::sqrt(found[i][c]);
    }
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static)
    for (int r = 0; r < n; r += 8)
      for (int k = 0; k < width; ++k)
        for (int i = 0; i < 8; ++i) across[k][r + i] = x[(r + i) * width + k];
#pragma omp for schedule(static)
    for (int row = 0; row < n; row += 2) two_rows(row, x, y);
  }
}
