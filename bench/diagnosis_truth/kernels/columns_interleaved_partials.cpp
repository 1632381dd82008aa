// task: column_sum
// good: columns_two_threads_good
// cause: false_sharing
// or: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

alignas(4096) static float partial[1024 / 8][2][8]; // eight sums of one thread, eight of the other, in each line

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  {
    const int t = omp_get_thread_num();
    for (int c = 0; c < 1024; c += 8) std::memset(partial[c / 8][t], 0, 32);
    for (int r = t * 512; r < t * 512 + 512; r += 2)
      for (int c = 0; c < 1024; c += 8) {
        v8* mine = reinterpret_cast<v8*>(partial[c / 8][t]);
        *mine += *reinterpret_cast<const v8*>(x + r * 1024 + c) + *reinterpret_cast<const v8*>(x + (r + 1) * 1024 + c);
      }
#pragma omp barrier
#pragma omp for schedule(static)
    for (int c = 0; c < 1024; ++c) y[c] = partial[c / 8][0][c % 8] + partial[c / 8][1][c % 8];
  }
}
