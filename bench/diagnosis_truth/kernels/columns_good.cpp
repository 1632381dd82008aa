// task: column_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  std::memset(y, 0, 1024 * sizeof(float));
  for (int r = 0; r < 1024; r += 4, x += 4 * 1024) // the sums stay in the first cache beside four rows
    for (int c = 0; c < 1024; ++c) y[c] += (x[c] + x[1024 + c]) + (x[2048 + c] + x[3072 + c]);
}
