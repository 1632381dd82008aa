// task: relu_small
// good: relu_small_good
// cause: thread_overhead
// or: load_imbalance
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
  for (int r = 0; r < 256; ++r) // a team for every row
#pragma omp parallel for num_threads(2) schedule(static)
    for (int c = 0; c < 512; ++c) y[r * 512 + c] = x[r * 512 + c] < 0 ? 0.0f : x[r * 512 + c];
}
