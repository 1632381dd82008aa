// task: filter_rows
// good: filter_good
// cause: not_vectorized
// flags: -O2 -march=native -fno-tree-vectorize -ffp-contract=fast
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *taps = in(args, 1);
  float* __restrict y = out(args);
  const float a = taps[0], b = taps[1], c = taps[2], d = taps[3], e = taps[4], f = taps[5], g = taps[6], h = taps[7], last = taps[8];
  for (int row = 0; row < 256; ++row) {
    for (int i = 0; i < 2048; ++i)
      y[i] = a * x[i] + b * x[i + 1] + c * x[i + 2] + d * x[i + 3] + e * x[i + 4] + f * x[i + 5] + g * x[i + 6] + h * x[i + 7] + last * x[i + 8];
    x += 2056;
    y += 2048;
  }
}
