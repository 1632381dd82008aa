// task: inversions
// good: inversions_two_threads_good
// cause: redundant_work
// written after the rules
// flags: -O3 -march=native -fopenmp
// threads: 2
#include "common.hpp"

#include <immintrin.h>

constexpr int n = 8192, block = 64, wide = block / 16;

extern "C" void pragma_kernel(const pragma_args* args) {
  const float* x = in(args, 0);
  float* y = out(args);
#pragma omp parallel for num_threads(2) schedule(dynamic, 2)
  for (int b = n / block - 1; b >= 0; --b) { // those with the most before them come first
    const int first = b * block;
    const __m512i one = _mm512_set1_epi32(1), lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512 here[wide];
    __m512i place[wide], count[wide];
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) {
      here[v] = _mm512_load_ps(x + first + 16 * v);
      place[v] = _mm512_add_epi32(lanes, _mm512_set1_epi32(first + 16 * v));
      count[v] = _mm512_setzero_si512();
    }
    for (int j = 0; j < n; ++j) { // only the lanes behind j count
      const __m512 other = _mm512_set1_ps(x[j]);
#pragma GCC unroll 4
      for (int v = 0; v < wide; ++v) {
        const __mmask16 behind = _mm512_cmpgt_epi32_mask(place[v], _mm512_set1_epi32(j));
        count[v] = _mm512_mask_add_epi32(count[v], _mm512_mask_cmp_ps_mask(behind, other, here[v], _CMP_GT_OQ), count[v], one);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < wide; ++v) _mm512_store_ps(y + first + 16 * v, _mm512_cvtepi32_ps(count[v]));
  }
}
