// task: bilinear
// unspoilt
// flags: -O3 -march=native
#include "common.hpp"

#include <utility>

constexpr int size = 128, wide = 2 * size;

/// A row at twice its width.
static inline void widen(const float* __restrict x, float* __restrict y) {
  y[0] = x[0];
  for (int c = 0; c < size - 1; ++c) {
    y[2 * c + 1] = 0.75f * x[c] + 0.25f * x[c + 1];
    y[2 * c + 2] = 0.25f * x[c] + 0.75f * x[c + 1];
  }
  y[wide - 1] = x[size - 1];
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) static float rows[2][wide];
  for (int plane = 0; plane < 8; ++plane) {
    float *above = rows[0], *below = rows[1];
    widen(x, above);
    std::memcpy(y, above, sizeof rows[0]);
    for (int r = 1; r < size; ++r) {
      widen(x + r * size, below);
      float *one = y + (2 * r - 1) * wide, *two = one + wide;
#pragma GCC ivdep
      for (int c = 0; c < wide; ++c) {
        one[c] = 0.75f * above[c] + 0.25f * below[c];
        two[c] = 0.25f * above[c] + 0.75f * below[c];
      }
      std::swap(above, below);
    }
    std::memcpy(y + (wide - 1) * wide, above, sizeof rows[0]);
    x += size * size;
    y += wide * wide;
  }
}
