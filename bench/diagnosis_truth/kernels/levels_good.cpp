// task: levels
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"
#include <algorithm>

constexpr int n = 256 * 512, edges = 63;
typedef int32_t i16 __attribute__((vector_size(64)));

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *values = in(args, 2);
  float* y = out(args);
  float t[edges];
  std::copy(in(args, 1), in(args, 1) + edges, t);
  std::sort(t, t + edges);
  for (int i = 0; i < n; i += 64) {
    v16 v[4];
    i16 below[4] = {};
    for (int k = 0; k < 4; ++k) v[k] = *reinterpret_cast<const v16*>(x + i + 16 * k);
    for (int e = 0; e < edges; ++e)
      for (int k = 0; k < 4; ++k) below[k] -= v[k] > t[e];
    alignas(64) int32_t level[64];
    std::memcpy(level, below, sizeof level);
    for (int l = 0; l < 64; ++l) y[i + l] = values[level[l]];
  }
}
