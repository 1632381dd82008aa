// task: spectrum
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -mprefer-vector-width=512
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  const float* __restrict lines = in(args, 1);
  float* __restrict y = out(args);
  for (int i = 0; i < 256 * 1024; ++i) {
    const auto below = [&](int k) { return (x[i] - lines[k]) * (x[i] - lines[k]) + 1; };
    float sum = 0;
#pragma GCC unroll 3
    for (int k = 0; k < 6; k += 2) sum += (below(k) + below(k + 1)) / (below(k) * below(k + 1)); // one division for two lines
    y[i] = sum;
  }
}
