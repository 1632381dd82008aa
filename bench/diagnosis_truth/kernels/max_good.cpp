// task: row_max
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    float m[128];
    for (int k = 0; k < 128; ++k) m[k] = x[r * 4096 + k];
    for (int c = 128; c < 4096; c += 128)
      for (int k = 0; k < 128; ++k) m[k] = x[r * 4096 + c + k] > m[k] ? x[r * 4096 + c + k] : m[k];
    for (int k = 1; k < 128; ++k) m[0] = m[k] > m[0] ? m[k] : m[0];
    y[r] = m[0];
  }
}
