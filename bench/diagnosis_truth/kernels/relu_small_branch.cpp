// task: relu_small
// good: relu_small_good
// cause: bad_speculation
// or: not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int64_t i = 0; i < 256 * 512; ++i) {
    float v = x[i];
    if (v < 0) {
      v = 0;
      __asm__ volatile("" : "+x"(v)); // keeps the branch
    }
    y[i] = v;
  }
}
