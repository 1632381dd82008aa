// task: square_sum_small
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 64; ++r, x += 2048) {
    v16 acc[8] = {};
    for (int c = 0; c < 2048; c += 128)
      for (int k = 0; k < 8; ++k) {
        const v16 v = *reinterpret_cast<const v16*>(x + c + 16 * k);
        acc[k] += v * v;
      }
    const v16 all = ((acc[0] + acc[1]) + (acc[2] + acc[3])) + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
    float s = 0;
    for (int k = 0; k < 16; ++k) s += all[k];
    y[r] = s;
  }
}
