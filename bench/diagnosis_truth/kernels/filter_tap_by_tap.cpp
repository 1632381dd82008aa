// task: filter_rows
// good: filter_good
// cause: port_pressure
// or: too_many_passes
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict taps = in(args, 1);
  float* __restrict y = out(args);
  for (int row = 0; row < 256; ++row, x += 2056, y += 2048) {
    std::fill(y, y + 2048, 0.0f);
    for (int k = 0; k < 9; ++k) {
      const float tap = taps[k];
      for (int i = 0; i < 2048; ++i) y[i] += tap * x[i + k];
      __asm__ volatile("" ::: "memory");
    }
  }
}
