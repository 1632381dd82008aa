// task: row_sum
// good: sum_good
// cause: not_vectorized
// or: dependency_chain
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args); // may be x as far as the compiler knows
  for (int r = 0; r < 256; ++r) {
    y[r] = 0;
    for (int c = 0; c < 4096; ++c) y[r] += x[r * 4096 + c];
  }
}
