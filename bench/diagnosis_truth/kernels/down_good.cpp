// task: running_sum_down
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -mprefer-vector-width=512
#include "common.hpp"

#include <algorithm>

extern "C" void pragma_kernel(const pragma_args* args) {
  constexpr int columns = 960;
  const float* x = in(args, 0);
  float* y = out(args);
  std::copy_n(x, columns, y);
  for (int r = 1; r < 1024; ++r) {
    const float* above = y;
    x += columns;
    y += columns;
#pragma GCC ivdep
    for (int c = 0; c < columns; ++c) y[c] = above[c] + x[c];
  }
}
