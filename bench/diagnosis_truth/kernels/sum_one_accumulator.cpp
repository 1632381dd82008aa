// task: row_sum
// good: sum_good
// cause: dependency_chain
// flags: -O3 -march=native -fno-unroll-loops
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    v16 acc = {};
    for (int c = 0; c < 4096; c += 16) acc += *reinterpret_cast<const v16*>(x + r * 4096 + c);
    float s = 0;
    for (int k = 0; k < 16; ++k) s += acc[k];
    y[r] = s;
  }
}
