// task: transpose
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r0 = 0; r0 < 1024; r0 += 16)
    for (int c0 = 0; c0 < 1024; c0 += 16)
      for (int c = c0; c < c0 + 16; ++c)
        for (int r = r0; r < r0 + 16; ++r) y[c * 1024 + r] = x[r * 1024 + c] * 2.0f;
}
