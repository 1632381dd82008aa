// task: box_blur
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int size = 1024, side = 9, pitch = size + side - 1;

/// The sums of nine neighbours, by sums of three.
static inline void across(const float* __restrict sums, float* __restrict y) {
  alignas(64) float three[size + 16];
  for (int c = 0; c < size + 6; ++c) three[c] = sums[c] + sums[c + 1] + sums[c + 2];
  for (int c = 0; c < size; ++c) y[c] = (three[c] + three[c + 3] + three[c + 6]) * (1.0f / (side * side));
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  alignas(64) float sums[pitch] = {};
  for (int r = 0; r < side - 1; ++r)
    for (int c = 0; c < pitch; ++c) sums[c] += x[r * pitch + c];
  for (int r = 0; r < size; ++r) {
    for (int c = 0; c < pitch; ++c) sums[c] += x[(r + side - 1) * pitch + c];
    across(sums, y + r * size);
    for (int c = 0; c < pitch; ++c) sums[c] -= x[r * pitch + c];
  }
}
