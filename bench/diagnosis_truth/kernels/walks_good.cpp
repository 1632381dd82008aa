// task: walks
// unspoilt
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp-simd
#include "common.hpp"

constexpr int n = 1 << 21, starts = 384, steps = 256;

/// The node that a fraction of all nodes names.
static inline int node_of(float u) {
  const int i = static_cast<int>(u * n);
  return i < 0 ? 0 : i > n - 1 ? n - 1 : i;
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *u = in(args, 0), *start = in(args, 1), *v = in(args, 2);
  float* y = out(args);
  int at[starts];
  float sum[starts] = {};
  for (int i = 0; i < starts; ++i) at[i] = node_of(start[i]);
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < starts; ++i) {
      sum[i] += v[at[i] & 4095];
      at[i] = node_of(u[at[i]]);
    }
  for (int i = 0; i < starts; ++i) y[i] = sum[i];
}
