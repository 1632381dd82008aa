// task: rectified_layer
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 2048, inputs = 64, outputs = 128, wide = outputs / 16;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  const float* weights = in(args, 1);
  float* y = out(args);
  for (int r = 0; r < rows; r += 2, x += 2 * inputs, y += 2 * outputs) {
    alignas(64) float h[2 * inputs];
    for (int k = 0; k < 2 * inputs; k += 16) {
      const v16 v = *reinterpret_cast<const v16*>(x + k);
      *reinterpret_cast<v16*>(h + k) = v > 0 ? v : v16{};
    }
    v16 sum[2][wide] = {};
    for (int k = 0; k < inputs; ++k) {
      const float a = h[k], b = h[inputs + k];
#pragma GCC unroll 8
      for (int v = 0; v < wide; ++v) {
        const v16 w = *reinterpret_cast<const v16*>(weights + k * outputs + 16 * v);
        sum[0][v] += a * w;
        sum[1][v] += b * w;
      }
    }
#pragma GCC unroll 2
    for (int row = 0; row < 2; ++row)
#pragma GCC unroll 8
      for (int v = 0; v < wide; ++v) *reinterpret_cast<v16*>(y + row * outputs + 16 * v) = sum[row][v];
  }
}
