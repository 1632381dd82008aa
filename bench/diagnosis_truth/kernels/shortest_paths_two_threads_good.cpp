// task: shortest_paths
// unspoilt
// faster: shortest_paths_two_threads_wide
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

constexpr int n = 64;

/// Shortest paths in place (Floyd and Warshall); a row by k stays in registers.
static void paths(float* d) {
  for (int k = 0; k < n; ++k) {
    v8 via[n / 8];
#pragma GCC unroll 8
    for (int c = 0; c < n / 8; ++c) via[c] = *reinterpret_cast<const v8*>(d + k * n + 8 * c);
    for (int r = 0; r < n; ++r) {
      const float first = d[r * n + k];
#pragma GCC unroll 8
      for (int c = 0; c < n / 8; ++c) {
        v8* to = reinterpret_cast<v8*>(d + r * n + 8 * c);
        const v8 longer = first + via[c], now = *to;
        *to = longer < now ? longer : now;
      }
    }
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp parallel for num_threads(2) schedule(static)
  for (int graph = 0; graph < 16; ++graph) {
    alignas(64) float d[n * n];
    std::memcpy(d, x + graph * n * n, sizeof d);
    paths(d);
    std::memcpy(y + graph * n * n, d, sizeof d);
  }
}
