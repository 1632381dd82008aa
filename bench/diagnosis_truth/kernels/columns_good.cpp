// task: column_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  std::memset(y, 0, 1024 * sizeof(float));
  for (int r = 0; r < 1024; r += 8, x += 8 * 1024)
    for (int c = 0; c < 1024; ++c)
      y[c] += ((x[c] + x[1024 + c]) + (x[2048 + c] + x[3072 + c])) + ((x[4096 + c] + x[5120 + c]) + (x[6144 + c] + x[7168 + c]));
}
