// task: chords
// good: chords_good
// cause: bad_speculation
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

static inline bool all_missed(__m512 first, __m512 last) { return !_mm512_cmp_ps_mask(last, first, _CMP_GT_OQ); }

/// Sixteen rays against all boxes; as soon as all sixteen have missed a box, on to the next.
extern "C" void pragma_kernel(const pragma_args* args) {
  gather_boxes(args);
  const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1);
  for (int r = 0; r < rays; r += 16) {
    __m512 origin[3], inverse[3], sum = zero;
    for (int a = 0; a < 3; ++a) {
      origin[a] = _mm512_loadu_ps(in(args, 0) + a * rays + r);
      inverse[a] = _mm512_div_ps(one, _mm512_loadu_ps(in(args, 1) + a * rays + r));
    }
    for (const box& b : all) {
      __m512 first = zero, last = one;
      between(origin[0], inverse[0], b.low[0], b.high[0], first, last);
      if (all_missed(first, last)) continue;
      between(origin[1], inverse[1], b.low[1], b.high[1], first, last);
      if (all_missed(first, last)) continue;
      between(origin[2], inverse[2], b.low[2], b.high[2], first, last);
      sum = _mm512_fmadd_ps(_mm512_max_ps(_mm512_sub_ps(last, first), zero), _mm512_set1_ps(b.density), sum);
    }
    _mm512_storeu_ps(out(args) + r, sum);
  }
}
