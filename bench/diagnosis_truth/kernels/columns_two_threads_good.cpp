// task: column_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

alignas(4096) static float partial[2][1024];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  {
    const int t = omp_get_thread_num();
    float* __restrict mine = partial[t];
    std::memset(mine, 0, sizeof partial[0]);
    for (int r = t * 512; r < t * 512 + 512; r += 2)
      for (int c = 0; c < 1024; ++c) mine[c] += x[r * 1024 + c] + x[(r + 1) * 1024 + c];
#pragma omp barrier
#pragma omp for schedule(static)
    for (int c = 0; c < 1024; ++c) y[c] = partial[0][c] + partial[1][c];
  }
}
