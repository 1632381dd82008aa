// task: short_rows
// good: short_good
// cause: store_forwarding
// or: scalar_tail, not_vectorized
// flags: -O2 -march=native
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) volatile float row[32] = {};
  for (int r = 0; r < 65536; ++r, x += 23) {
#pragma GCC unroll 23
    for (int c = 0; c < 23; ++c) row[c] = x[c];
    const v16 a = *reinterpret_cast<const v16*>(const_cast<const float*>(row)), b = *reinterpret_cast<const v16*>(const_cast<const float*>(row + 16));
    __asm__ volatile("" ::: "memory");
    const v16 s = a * a + b * b;
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += s[k];
    y[r] = sum;
  }
}
