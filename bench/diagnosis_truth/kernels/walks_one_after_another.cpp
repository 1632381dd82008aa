// task: walks
// good: walks_good
// cause: memory_latency_bound
// or: dependency_chain
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
  for (int i = 0; i < starts; ++i) {
    int at = node_of(start[i]);
    float sum = 0;
    for (int s = 0; s < steps; ++s) {
      sum += v[at & 4095];
      at = node_of(u[at]);
    }
    y[i] = sum;
  }
}
