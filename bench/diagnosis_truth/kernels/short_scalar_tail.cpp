// task: short_rows
// good: short_good
// cause: scalar_tail
// or: dependency_chain, not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 65536; ++r, x += 23) {
    v16 acc = {};
    int c = 0;
    for (; c + 16 <= 23; c += 16) acc += *reinterpret_cast<const v16*>(x + c) * *reinterpret_cast<const v16*>(x + c);
    float s = 0;
#pragma GCC novector
    for (; c < 23; ++c) s += x[c] * x[c];
    for (int k = 0; k < 16; ++k) s += acc[k];
    y[r] = s;
  }
}
