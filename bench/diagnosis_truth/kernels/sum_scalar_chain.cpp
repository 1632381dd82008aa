// task: row_sum
// good: sum_good
// cause: not_vectorized
// or: dependency_chain
// flags: -O3 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    float s = 0;
    for (int c = 0; c < 4096; ++c) s += x[r * 4096 + c];
    y[r] = s;
  }
}
