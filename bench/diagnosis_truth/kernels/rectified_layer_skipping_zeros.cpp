// task: rectified_layer
// good: rectified_layer_good
// cause: bad_speculation
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 2048, inputs = 64, outputs = 128, wide = outputs / 16;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  const float* weights = in(args, 1);
  float* y = out(args);
  for (int r = 0; r < rows; r += 2, x += 2 * inputs, y += 2 * outputs) {
    v16 sum[2][wide] = {};
    for (int k = 0; k < inputs; ++k) {
      const float a = x[k], b = x[inputs + k];
      const float* w = weights + k * outputs;
      if (a > 0) { // what is not positive adds nothing
#pragma GCC unroll 8
        for (int v = 0; v < wide; ++v) sum[0][v] += a * *reinterpret_cast<const v16*>(w + 16 * v);
      }
      if (b > 0) {
#pragma GCC unroll 8
        for (int v = 0; v < wide; ++v) sum[1][v] += b * *reinterpret_cast<const v16*>(w + 16 * v);
      }
    }
#pragma GCC unroll 2
    for (int row = 0; row < 2; ++row)
#pragma GCC unroll 8
      for (int v = 0; v < wide; ++v) *reinterpret_cast<v16*>(y + row * outputs + 16 * v) = sum[row][v];
  }
}
