// task: column_sum_tall
// good: tall_good
// cause: memory_latency_bound
// or: strided_access
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int c = 0; c < 2048; c += 16) { // a whole line each time, but each in another page
    v16 a = {}, b = {}, d = {}, e = {};
    for (int r = 0; r < 4096; r += 4) {
      a += *reinterpret_cast<const v16*>(x + r * 2048 + c);
      b += *reinterpret_cast<const v16*>(x + (r + 1) * 2048 + c);
      d += *reinterpret_cast<const v16*>(x + (r + 2) * 2048 + c);
      e += *reinterpret_cast<const v16*>(x + (r + 3) * 2048 + c);
    }
    *reinterpret_cast<v16*>(y + c) = (a + b) + (d + e);
  }
}
