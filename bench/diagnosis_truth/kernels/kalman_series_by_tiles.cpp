// task: kalman_series
// unspoilt
// written after the rules
// flags: -O2 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <algorithm>

constexpr int filters = 64, times = 2048, together = 8, tile = 64;

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
  for (int begin = 0; begin < times; begin += tile) {
    float seen[tile][together], levels[tile][together];
    for (int i = 0; i < together; ++i)
      for (int t = 0; t < tile; ++t) seen[t][i] = z[(first + i * apart) * times + begin + t];
    for (int t = 0; t < tile; ++t)
      for (int i = 0; i < together; ++i) {
        const int f = first + i * apart;
        const float before = all[f].spread + q[i], gain = before / (before + r[i]);
        all[f].level += gain * (seen[t][i] - all[f].level);
        all[f].spread = gain * r[i];
        levels[t][i] = all[f].level;
      }
    for (int i = 0; i < together; ++i)
      for (int t = 0; t < tile; ++t) y[(first + i * apart) * times + begin + t] = levels[t][i];
  }
}

extern "C" void pragma_kernel(const pragma_args* args) {
#pragma omp parallel for num_threads(2) schedule(static)
  for (int first = 0; first < filters; first += together) run(args, first, 1);
}
