// task: pagerank
// good: pagerank_good
// cause: scalar_tail
// written after the rules
// flags: -O3 -march=native -fno-tree-vectorize
#include "common.hpp"

#include <immintrin.h>

constexpr int webs = 64, pages = 90, steps = 50, wide = pages / 16, rest = pages - 16 * wide, pitch = 96;

extern "C" void pragma_kernel(const pragma_args* args) {
  alignas(64) static float shares[pages][pitch];
  alignas(64) float p[pitch];
  const float* links = in(args, 0);
  float* y = out(args);
  const __m512 least = _mm512_set1_ps(0.01f);
  for (int web = 0; web < webs; ++web, y += pages) {
    for (int i = 0; i < pages; ++i, links += pages) {
      __m512 row[wide], sums = _mm512_setzero_ps();
#pragma GCC unroll 5
      for (int v = 0; v < wide; ++v) {
        row[v] = _mm512_max_ps(_mm512_loadu_ps(links + 16 * v), least);
        sums += row[v];
      }
      float sum = _mm512_reduce_add_ps(sums);
      for (int j = 16 * wide; j < pages; ++j) sum += links[j] > 0.01f ? links[j] : 0.01f;
      const float scale = 0.85f / sum;
#pragma GCC unroll 5
      for (int v = 0; v < wide; ++v) _mm512_store_ps(shares[i] + 16 * v, row[v] * scale);
      for (int j = 16 * wide; j < pages; ++j) shares[i][j] = (links[j] > 0.01f ? links[j] : 0.01f) * scale;
    }
    for (int i = 0; i < pages; ++i) p[i] = 1.0f / pages;
    for (int step = 0; step < steps; ++step) {
      __m512 even[wide], odd[wide];
      float tail[rest];
#pragma GCC unroll 5
      for (int v = 0; v < wide; ++v) {
        even[v] = _mm512_set1_ps(0.15f / pages);
        odd[v] = _mm512_setzero_ps();
      }
#pragma GCC unroll 10
      for (int j = 0; j < rest; ++j) tail[j] = 0.15f / pages;
      for (int i = 0; i < pages; i += 2) {
        const __m512 a = _mm512_set1_ps(p[i]), b = _mm512_set1_ps(p[i + 1]);
#pragma GCC unroll 5
        for (int v = 0; v < wide; ++v) {
          even[v] = _mm512_fmadd_ps(a, _mm512_load_ps(shares[i] + 16 * v), even[v]);
          odd[v] = _mm512_fmadd_ps(b, _mm512_load_ps(shares[i + 1] + 16 * v), odd[v]);
        }
#pragma GCC unroll 10
        for (int j = 0; j < rest; ++j) {
          tail[j] += p[i] * shares[i][16 * wide + j];
          tail[j] += p[i + 1] * shares[i + 1][16 * wide + j];
        }
      }
#pragma GCC unroll 5
      for (int v = 0; v < wide; ++v) _mm512_store_ps(p + 16 * v, even[v] + odd[v]);
#pragma GCC unroll 10
      for (int j = 0; j < rest; ++j) p[16 * wide + j] = tail[j];
    }
    for (int i = 0; i < pages; ++i) y[i] = p[i];
  }
}
