// task: chords
// unspoilt
// written after the rules
// flags: -O3 -march=native
#include "common.hpp"

#include <immintrin.h>

constexpr int rays = 2048, boxes = 512;

struct box {
  float low[3], high[3], density, unused;
};
alignas(64) static box all[boxes];

static void gather_boxes(const pragma_args* args) {
  const float *low = in(args, 2), *size = in(args, 3), *density = in(args, 4);
  for (int b = 0; b < boxes; ++b) {
    for (int a = 0; a < 3; ++a) {
      all[b].low[a] = low[a * boxes + b];
      all[b].high[a] = low[a * boxes + b] + size[a * boxes + b];
    }
    all[b].density = density[b];
  }
}

/// What is left of the rays' parts first ... last between two planes.
static inline void between(__m512 origin, __m512 inverse, float low, float high, __m512& first, __m512& last) {
  const __m512 s = _mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps(low), origin), inverse);
  const __m512 e = _mm512_mul_ps(_mm512_sub_ps(_mm512_set1_ps(high), origin), inverse);
  first = _mm512_max_ps(first, _mm512_min_ps(s, e));
  last = _mm512_min_ps(last, _mm512_max_ps(s, e));
}

/// 32 rays against all boxes.
extern "C" void pragma_kernel(const pragma_args* args) {
  gather_boxes(args);
  const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1);
  for (int r = 0; r < rays; r += 32) {
    __m512 origin[2][3], inverse[2][3], sum[2] = {zero, zero};
    for (int v = 0; v < 2; ++v)
      for (int a = 0; a < 3; ++a) {
        origin[v][a] = _mm512_loadu_ps(in(args, 0) + a * rays + r + 16 * v);
        inverse[v][a] = _mm512_div_ps(one, _mm512_loadu_ps(in(args, 1) + a * rays + r + 16 * v));
      }
    for (const box& b : all)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        __m512 first = zero, last = one;
#pragma GCC unroll 3
        for (int a = 0; a < 3; ++a) between(origin[v][a], inverse[v][a], b.low[a], b.high[a], first, last);
        sum[v] = _mm512_fmadd_ps(_mm512_max_ps(_mm512_sub_ps(last, first), zero), _mm512_set1_ps(b.density), sum[v]);
      }
    for (int v = 0; v < 2; ++v) _mm512_storeu_ps(out(args) + r + 16 * v, sum[v]);
  }
}
