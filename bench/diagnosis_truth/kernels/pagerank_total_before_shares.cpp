// task: pagerank
// good: pagerank_good
// cause: split_access
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int webs = 64, pages = 90, steps = 50, wide = 6, pitch = 16 * wide;
constexpr __mmask16 rest = (1u << (pages - 80)) - 1; // lanes of the last vector

/// What a page has in all, and how it shares that.
struct page {
  float all;
  float shares[pitch];
};

extern "C" void pragma_kernel(const pragma_args* args) {
  alignas(64) static page from[pages];
  alignas(64) float p[pitch];
  const float* links = in(args, 0);
  float* y = out(args);
  const __m512 least = _mm512_set1_ps(0.01f);
  for (int web = 0; web < webs; ++web, y += pages) {
    for (int i = 0; i < pages; ++i, links += pages) {
      __m512 row[wide], sum = _mm512_setzero_ps();
#pragma GCC unroll 6
      for (int v = 0; v < wide; ++v) {
        const __mmask16 there = v < wide - 1 ? 0xffff : rest;
        row[v] = _mm512_maskz_max_ps(there, _mm512_maskz_loadu_ps(there, links + 16 * v), least);
        sum += row[v];
      }
      from[i].all = _mm512_reduce_add_ps(sum);
      const float scale = 0.85f / from[i].all;
#pragma GCC unroll 6
      for (int v = 0; v < wide; ++v) _mm512_storeu_ps(from[i].shares + 16 * v, row[v] * scale);
    }
    for (int v = 0; v < wide; ++v) _mm512_store_ps(p + 16 * v, _mm512_set1_ps(1.0f / pages));
    for (int step = 0; step < steps; ++step) {
      __m512 even[wide], odd[wide];
#pragma GCC unroll 6
      for (int v = 0; v < wide; ++v) {
        even[v] = _mm512_set1_ps(0.15f / pages);
        odd[v] = _mm512_setzero_ps();
      }
      for (int i = 0; i < pages; i += 2) {
        const __m512 a = _mm512_set1_ps(p[i]), b = _mm512_set1_ps(p[i + 1]);
#pragma GCC unroll 6
        for (int v = 0; v < wide; ++v) {
          even[v] = _mm512_fmadd_ps(a, _mm512_loadu_ps(from[i].shares + 16 * v), even[v]);
          odd[v] = _mm512_fmadd_ps(b, _mm512_loadu_ps(from[i + 1].shares + 16 * v), odd[v]);
        }
      }
#pragma GCC unroll 6
      for (int v = 0; v < wide; ++v) _mm512_store_ps(p + 16 * v, even[v] + odd[v]);
    }
    for (int v = 0; v < wide; ++v) _mm512_mask_storeu_ps(y + 16 * v, v < wide - 1 ? 0xffff : rest, _mm512_load_ps(p + 16 * v));
  }
}
