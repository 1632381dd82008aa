// task: exp_rows
// good: exp_two_threads_good
// cause: thread_overhead
// or: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  for (int64_t r = 0; r < 512; ++r) // a wait after every 1,024 elements
#pragma omp for schedule(static)
    for (int64_t i = r * 1024; i < r * 1024 + 1024; ++i) y[i] = fast_exp(x[i] * 0.5f);
}
