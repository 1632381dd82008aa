// task: histogram
// good: histogram_good
// cause: store_forwarding
// or: dependency_chain
// flags: -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

constexpr int n = 1024 * 1024, bins = 64, tables = 1;
alignas(4096) static int32_t counts[2][tables][bins];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  {
    const int t = omp_get_thread_num();
    for (int k = 0; k < tables; ++k)
      for (int b = 0; b < bins; ++b) counts[t][k][b] = 0;
#pragma omp for schedule(static)
    for (int i = 0; i < n; i += 64) {
      alignas(64) int32_t bin[64];
#pragma omp simd
      for (int l = 0; l < 64; ++l) {
        const float f = x[i + l] * 8 + 32;
        bin[l] = static_cast<int32_t>(f < 0 ? 0.0f : f > 63 ? 63.0f : f);
      }
      for (int l = 0; l < 64; l += tables)
        for (int k = 0; k < tables; ++k) ++counts[t][k][bin[l + k]];
    }
  }
  for (int b = 0; b < bins; ++b) {
    int32_t sum = 0;
    for (int t = 0; t < 2; ++t)
      for (int k = 0; k < tables; ++k) sum += counts[t][k][b];
    y[b] = static_cast<float>(sum);
  }
}
