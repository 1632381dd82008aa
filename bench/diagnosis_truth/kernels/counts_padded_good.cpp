// task: row_sum
// unspoilt
// flags: -O3 -march=native -ffast-math -fno-finite-math-only -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

struct alignas(256) slot { volatile float value[8]; };
static slot partial[2];

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* __restrict x = in(args, 0);
  float* __restrict y = out(args);
#pragma omp parallel num_threads(2)
  {
    volatile float* mine = partial[omp_get_thread_num()].value;
#pragma omp for schedule(static)
    for (int r = 0; r < 256; ++r) {
      mine[0] = 0;
      for (int c = 0; c < 4096; c += 64) {
        v16 s = {};
        for (int k = 0; k < 4; ++k) s += *reinterpret_cast<const v16*>(x + r * 4096 + c + 16 * k);
        float all = 0;
        for (int k = 0; k < 16; ++k) all += s[k];
        mine[0] = mine[0] + all;
      }
      y[r] = mine[0];
    }
  }
}
