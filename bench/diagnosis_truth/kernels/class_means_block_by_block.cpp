// task: class_means
// good: class_means_two_threads_good
// cause: thread_overhead
// written after the rules
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <omp.h>

typedef float v2 __attribute__((vector_size(8))); // a sum and how many are in it

constexpr int n = 524288, classes = 64, copies = 4, block = 2048;

struct alignas(128) tables {
  v2 of[copies][classes];
};

extern "C" void pragma_kernel(const pragma_args* args) {
  const int32_t* labels = static_cast<const int32_t*>(args->inputs[0].data);
  const float* values = in(args, 1);
  float* y = out(args);
  tables all[2] = {};
  for (int first = 0; first < n; first += block) { // blocks that stay in the cache
#pragma omp parallel num_threads(2)
    {
      tables& mine = all[omp_get_thread_num()];
#pragma omp for schedule(static) nowait
      for (int i = first; i < first + block; i += copies)
#pragma GCC unroll 4
        for (int k = 0; k < copies; ++k) mine.of[k][labels[i + k] & (classes - 1)] += v2{values[i + k], 1.0f};
    }
  }
  for (int c = 0; c < classes; ++c) {
    v2 total = {};
    for (int t = 0; t < 2; ++t)
      for (int k = 0; k < copies; ++k) total += all[t].of[k][c];
    y[c] = total[0] / (total[1] > 1 ? total[1] : 1.0f);
  }
}
