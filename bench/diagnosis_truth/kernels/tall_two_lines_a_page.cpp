// task: column_sum_tall
// good: tall_good
// cause: memory_latency_bound
// or: strided_access
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int c = 0; c < 2048; c += 32) { // two lines of each row, and the next row is two pages on
    v16 a = {}, b = {};
    for (int r = 0; r < 4096; ++r) {
      a += *reinterpret_cast<const v16*>(x + r * 2048 + c);
      b += *reinterpret_cast<const v16*>(x + r * 2048 + c + 16);
    }
    *reinterpret_cast<v16*>(y + c) = a;
    *reinterpret_cast<v16*>(y + c + 16) = b;
  }
}
