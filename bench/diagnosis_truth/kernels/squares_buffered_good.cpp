// task: square_sum_small
// unspoilt
// faster: squares_good
// flags: -O3 -march=native -ffast-math -fno-finite-math-only
#include "common.hpp"

alignas(64) static float kept[2048 + 16];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  float* rows = kept;
  for (int r = 0; r < 64; ++r, x += 2048) {
    std::memcpy(rows, x, 2048 * sizeof(float));
    float s = 0;
    for (int pass = 0; pass < 4; ++pass) {
      v16 acc[8] = {};
      for (int c = 0; c < 2048; c += 128)
        for (int k = 0; k < 8; ++k) {
          const v16 v = *reinterpret_cast<const v16*>(rows + c + 16 * k);
          acc[k] += v * v;
        }
      __asm__ volatile("" ::: "memory");
      const v16 all = ((acc[0] + acc[1]) + (acc[2] + acc[3])) + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
      for (int k = 0; k < 16; ++k) s += 0.25f * all[k];
    }
    y[r] = s;
  }
}
