// task: column_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int c0 = 0; c0 < 1024; c0 += 128) {
    v16 acc[8] = {};
    for (int r = 0; r < 1024; ++r)
      for (int k = 0; k < 8; ++k) acc[k] += *reinterpret_cast<const v16*>(x + r * 1024 + c0 + 16 * k);
    for (int k = 0; k < 8; ++k) *reinterpret_cast<v16*>(y + c0 + 16 * k) = acc[k];
  }
}
