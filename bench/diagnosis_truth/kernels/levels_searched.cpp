// task: levels
// good: levels_good
// cause: bad_speculation
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
  for (int i = 0; i < n; ++i) y[i] = values[std::lower_bound(t, t + edges, x[i]) - t];
}
