// task: square_sum_small
// good: squares_good
// cause: dependency_chain
// or: not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 64; ++r, x += 2048) {
    v8 acc = {};
    for (int c = 0; c < 2048; c += 8) {
      const v8 v = *reinterpret_cast<const v8*>(x + c);
      acc += v * v;
    }
    float s = 0;
    for (int k = 0; k < 8; ++k) s += acc[k];
    y[r] = s;
  }
}
