// task: exp_rows
// unspoilt
// faster: exp_two_threads_wide
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel for num_threads(2) schedule(static)
  for (int64_t i = 0; i < 128 * 4096; ++i) y[i] = fast_exp(x[i] * 0.5f);
}
