// task: gram
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int rows = 4096, columns = 64, block = 128, high = 8;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* g = out(args);
  for (int first = 0; first < rows; first += block, x += block * columns)
    for (int i = 0; i < columns; i += high)
      for (int j = 0; j < columns; j += 32) {
        v16 sum[high][2] = {};
        for (int r = 0; r < block; ++r) {
          const v16 a = *reinterpret_cast<const v16*>(x + r * columns + j), b = *reinterpret_cast<const v16*>(x + r * columns + j + 16);
#pragma GCC unroll 8
          for (int k = 0; k < high; ++k) {
            const float s = x[r * columns + i + k];
            sum[k][0] += s * a;
            sum[k][1] += s * b;
          }
        }
#pragma GCC unroll 8
        for (int k = 0; k < high; ++k)
          for (int half = 0; half < 2; ++half) {
            v16* to = reinterpret_cast<v16*>(g + (i + k) * columns + j + 16 * half);
            *to = first ? *to + sum[k][half] : sum[k][half];
          }
      }
}
