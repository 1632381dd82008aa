// task: row_max
// good: max_two_threads_good
// cause: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel for num_threads(2) schedule(static, 208) // 208 rows for one thread, 48 for the other
  for (int r = 0; r < 256; ++r) y[r] = largest_of(x + r * 4096, 4096);
}
