// task: shortest_paths
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

constexpr int n = 64;

/// Shortest paths in place (Floyd and Warshall); a row by k stays in registers.
static void paths(float* d) {
  for (int k = 0; k < n; ++k) {
    v16 via[n / 16];
#pragma GCC unroll 4
    for (int c = 0; c < n / 16; ++c) via[c] = *reinterpret_cast<const v16*>(d + k * n + 16 * c);
    for (int r = 0; r < n; ++r) {
      const float first = d[r * n + k];
#pragma GCC unroll 4
      for (int c = 0; c < n / 16; ++c) {
        v16* to = reinterpret_cast<v16*>(d + r * n + 16 * c);
        const v16 longer = first + via[c], now = *to;
        *to = longer < now ? longer : now;
      }
    }
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
  alignas(64) static float d[n * n];
  for (int graph = 0; graph < 16; ++graph, x += n * n, y += n * n) {
    std::memcpy(d, x, sizeof d);
    paths(d);
    std::memcpy(y, d, sizeof d);
  }
}
