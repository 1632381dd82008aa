// task: copy_scale
// good: copy_two_threads_good
// cause: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  {
    const bool first = omp_get_thread_num() == 0; // nine tenths of the rows
    const int64_t from = first ? 0 : 2048 * 1024 / 10 * 9, to = first ? 2048 * 1024 / 10 * 9 : 2048 * 1024;
    for (int64_t i = from; i < to; ++i) y[i] = x[i] * 0.25f;
  }
}
