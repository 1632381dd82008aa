// task: gram
// good: gram_good
// cause: port_pressure
// written after the rules
// flags: -O3 -march=native -mprefer-vector-width=512 -fopenmp-simd
#include "common.hpp"

#include <algorithm>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* g = out(args);
  std::fill(g, g + 64 * 64, 0.0f);
  for (int r = 0; r < 4096; ++r, x += 64)
    for (int i = 0; i < 64; ++i) {
      const float s = x[i];
      float* to = g + i * 64;
#pragma omp simd
      for (int j = 0; j < 64; ++j) to[j] += s * x[j];
    }
}
