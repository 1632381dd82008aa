// task: row_max
// good: max_good
// cause: not_vectorized
// or: dependency_chain
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    float m = x[r * 4096];
    for (int c = 1; c < 4096; ++c) m = x[r * 4096 + c] > m ? x[r * 4096 + c] : m;
    y[r] = m;
  }
}
