// task: triangle_product
// good: triangle_two_threads_good
// cause: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
// threads: 2
#include "common.hpp"

constexpr int n = 1536, width = 32, height = 8;

/// Eight rows of the product, from the given one on.
static void eight_rows(int row, const float* a, const float* b, float* y) {
  v16 left[height] = {}, right[height] = {};
  a += row * n;
  for (int k = 0; k < row; ++k) {
    const v16 l = *reinterpret_cast<const v16*>(b + k * width), r = *reinterpret_cast<const v16*>(b + k * width + 16);
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i) {
      left[i] += a[i * n + k] * l;
      right[i] += a[i * n + k] * r;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < height; ++i) {
    for (int k = row; k <= row + i; ++k) {
      left[i] += a[i * n + k] * *reinterpret_cast<const v16*>(b + k * width);
      right[i] += a[i * n + k] * *reinterpret_cast<const v16*>(b + k * width + 16);
    }
    *reinterpret_cast<v16*>(y + (row + i) * width) = left[i];
    *reinterpret_cast<v16*>(y + (row + i) * width + 16) = right[i];
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *a = in(args, 0), *b = in(args, 1);
  float* y = out(args);
  for (int row = 0; row < n; row += height) eight_rows(row, a, b, y);
}
