// task: kalman_series
// unspoilt
// faster: kalman_series_by_tiles
// written after the rules
// flags: -O2 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <algorithm>

constexpr int filters = 64, times = 2048, together = 8;

struct filter {
  float level, spread;
};
alignas(64) static filter all[filters];

/// Filters first, first + apart, ...: all of them take a step before any takes the next.
static void run(const pragma_args* args, int first, int apart) {
  const float* z = in(args, 0);
  float* y = out(args);
  float q[together], r[together];
  for (int i = 0; i < together; ++i) {
    const int f = first + i * apart;
    all[f] = {0, 1};
    q[i] = std::clamp(in(args, 1)[f], 0.001f, 10.0f);
    r[i] = std::clamp(in(args, 2)[f], 0.01f, 10.0f);
  }
  for (int t = 0; t < times; ++t)
    for (int i = 0; i < together; ++i) {
      const int f = first + i * apart;
      const float before = all[f].spread + q[i], gain = before / (before + r[i]);
      all[f].level += gain * (z[f * times + t] - all[f].level);
      all[f].spread = gain * r[i];
      y[f * times + t] = all[f].level;
    }
}

extern "C" void pragma_kernel(const pragma_args* args) {
#pragma omp parallel for num_threads(2) schedule(static)
  for (int first = 0; first < filters; first += together) run(args, first, 1);
}
