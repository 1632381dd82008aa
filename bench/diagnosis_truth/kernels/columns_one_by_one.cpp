// task: column_sum
// good: columns_good
// cause: strided_access
// or: not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int c = 0; c < 1024; ++c) {
    float s = 0;
    for (int r = 0; r < 1024; ++r) s += x[r * 1024 + c];
    y[c] = s;
  }
}
