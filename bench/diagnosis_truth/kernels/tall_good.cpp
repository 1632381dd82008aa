// task: column_sum_tall
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  std::memset(y, 0, 2048 * sizeof(float));
  for (int r = 0; r < 4096; r += 4)
    for (int c = 0; c < 2048; ++c) y[c] += (x[r * 2048 + c] + x[(r + 1) * 2048 + c]) + (x[(r + 2) * 2048 + c] + x[(r + 3) * 2048 + c]);
}
