// task: dot_rows
// good: dot_good
// cause: not_vectorized
// or: dependency_chain
// flags: -O2 -march=native -fno-tree-vectorize
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict z = in(args, 1);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    float a = 0, b = 0, c = 0, d = 0; // four sums, each of single elements
    for (int i = r * 2048; i < r * 2048 + 2048; i += 4) {
      a += x[i] * z[i];
      b += x[i + 1] * z[i + 1];
      c += x[i + 2] * z[i + 2];
      d += x[i + 3] * z[i + 3];
    }
    y[r] = (a + b) + (c + d);
  }
}
