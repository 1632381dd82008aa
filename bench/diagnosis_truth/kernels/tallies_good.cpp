// task: tallies
// unspoilt
// flags: -O2 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <immintrin.h>
#include <omp.h>

struct alignas(128) tally {
  int below[8];
};
static tally tallies[2];

static __attribute__((noinline)) void count(const float* row, const __m512* limit, tally& to) {
  int here[8] = {};
  for (int c = 0; c < 256; c += 16) {
    const __m512 v = _mm512_loadu_ps(row + c);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) here[k] += __builtin_popcount(_mm512_cmp_ps_mask(v, limit[k], _CMP_LT_OQ));
  }
  for (int k = 0; k < 8; ++k) to.below[k] += here[k];
}

extern "C" void pragma_kernel(const pragma_args* args) {
  const float *x = in(args, 0), *t = in(args, 1);
  float* y = out(args);
  __m512 limit[8];
  for (int k = 0; k < 8; ++k) limit[k] = _mm512_set1_ps(t[k]);
#pragma omp parallel num_threads(2)
  {
    tally& mine = tallies[omp_get_thread_num()];
    mine = {};
#pragma omp for schedule(static)
    for (int r = 0; r < 4096; ++r) count(x + r * 256, limit, mine);
  }
  for (int k = 0; k < 8; ++k) y[k] = static_cast<float>(tallies[0].below[k] + tallies[1].below[k]);
}
