// task: dot_rows
// good: dot_good
// cause: dependency_chain
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict z = in(args, 1);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) {
    v16 acc[1] = {};
    for (int c = 0; c < 2048; c += 16)
      for (int k = 0; k < 1; ++k) acc[k] += *reinterpret_cast<const v16*>(x + r * 2048 + c + 16 * k) * *reinterpret_cast<const v16*>(z + r * 2048 + c + 16 * k);
    v16 all = acc[0];
    for (int k = 1; k < 1; ++k) all += acc[k];
    float s = 0;
    for (int k = 0; k < 16; ++k) s += all[k];
    y[r] = s;
  }
}
